"""TPC-H at small scale: the eight tables, their rows from a seed, and the queries as views.

Keys, domains and date rules are those of TPC-H, so that its queries select what they should. Texts
are shorter than dbgen's. Four
shares are larger than there, because scale factors here are 0.001 to 0.1 and a query that selects
nothing tests nothing: one order in
50 is large (Q18), one part in ten is of a kind that Q17, Q19 and Q20 ask for, one supplier in 20
   has complaints (Q16), one
order in 50 has special requests (Q13).

Rows have numbers from 0 in every table; `Generator.rows` makes the rows of any numbers, again and
again with other values, which is what an update is. An order comes with its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
SUPPLIERS = 4  # of a part

_MONEY = "decimal(15,2)"
COLUMNS = {
    "region": "r_regionkey int, r_name string, r_comment string",
    "nation": "n_nationkey int, n_name string, n_regionkey int, n_comment string",
    "supplier": (
        "s_suppkey bigint, s_name string, s_address string, s_nationkey int, s_phone string,"
        f" s_acctbal {_MONEY}, s_comment string"
    ),
    "customer": (
        "c_custkey bigint, c_name string, c_address string, c_nationkey int, c_phone string,"
        f" c_acctbal {_MONEY}, c_mktsegment string, c_comment string"
    ),
    "part": (
        "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size"
        f" int, p_container string, p_retailprice {_MONEY}, p_comment string"
    ),
    "partsupp": (
        f"ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost {_MONEY}, ps_comment"
        " string"
    ),
    "orders": (
        f"o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice {_MONEY},"
        " o_orderdate date, o_orderpriority string, o_clerk string, o_shippriority int, o_comment"
        " string"
    ),
    "lineitem": (
        "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity"
        f" {_MONEY}, l_extendedprice {_MONEY}, l_discount {_MONEY}, l_tax {_MONEY}, l_returnflag"
        " string, l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date,"
        " l_shipinstruct string, l_shipmode string, l_comment string"
    ),
}
KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
TABLES = tuple(COLUMNS)
QUERIES = tuple(f"q{number:02d}" for number in range(1, 23))

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(
        ("ALGERIA", 0),
        ("ARGENTINA", 1),
        ("BRAZIL", 1),
        ("CANADA", 1),
        ("EGYPT", 4),
        ("ETHIOPIA", 0),
        ("FRANCE", 3),
        ("GERMANY", 3),
    ),
    *(
        ("INDIA", 2),
        ("INDONESIA", 2),
        ("IRAN", 4),
        ("IRAQ", 4),
        ("JAPAN", 2),
        ("JORDAN", 4),
        ("KENYA", 0),
        ("MOROCCO", 0),
    ),
    *(
        ("MOZAMBIQUE", 0),
        ("PERU", 1),
        ("CHINA", 2),
        ("ROMANIA", 3),
        ("SAUDI ARABIA", 4),
        ("VIETNAM", 2),
        ("RUSSIA", 3),
    ),
    *(("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
)
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_SIZES, _BOXES = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    (
        "CASE",
        "BOX",
        "BAG",
        "JAR",
        "PKG",
        "PACK",
        "CAN",
        "DRUM",
    ),
)
_CONTAINERS = tuple(f"{size} {box}" for size in _SIZES for box in _BOXES)
_TYPES = tuple(
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
_BRANDS = tuple(f"Brand#{a}{b}" for a in range(1, 6) for b in range(1, 6))
# brands and containers of Q17 and Q19
_ASKED = (("Brand#12", "SM PKG"), ("Brand#23", "MED BOX"), ("Brand#34", "LG CASE"))
_COLOR_NAMES = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate coral
cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew
hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy
olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky
slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow"""
_NOISE = """
accounts asymptotes bold brave carefully courts daring deposits dolphins dugouts escapades even excuses express final fluffily foxes
frays furiously ideas instructions ironic packages pending pinto platelets quickly quiet realms regular sentiments silent slyly
theodolites unusual waters"""
_COLORS, _WORDS = tuple(_COLOR_NAMES.split()), tuple(_NOISE.split())
_POOL = 1_000  # different comments


def _day(text: str) -> int:
    return int(np.datetime64(text, "D").astype(np.int64))


_FIRST_DAY, _LAST_DAY, _TODAY = _day("1992-01-01"), _day("1998-08-02"), _day("1995-06-17")


def create_table(table: str) -> str:
    return f"CREATE TABLE {table} ({COLUMNS[table]}, PRIMARY KEY ({', '.join(KEYS[table])}))"


@cache
def query(name: str) -> str:
    """The SELECT of a query, in words that Belvedere, Spark and DuckDB read alike; the comments of
    its file say what was changed.
    """
    text = (files("belvedere.bench") / "tpch_queries" / f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def order_key(number: Ints) -> Ints:
    """Eight keys of every 32 are used, as dbgen does."""
    return number // 8 * 32 + number % 8 + 1


def line_count(number: Ints) -> Ints:
    """Lines of an order, 1 to 7: they follow from its number, so nobody has to remember them."""
    return np.where(_large(number), 7, _mixed(number) % 7 + 1)


def _large(number: Ints) -> npt.NDArray[np.bool_]:
    return np.equal(_mixed(number + 1_000_003) % 50, 0)


def _mixed(number: Ints) -> Ints:
    """A fixed pseudo-random number for each number (Knuth's multiplicative hash)."""
    return (number * 2_654_435_761 + 40_503) % 4_294_967_296 >> 7


@dataclass(frozen=True, slots=True)
class Generator:
    """Rows of the tables at a scale factor; the same random numbers give the same rows."""

    scale: float

    def count(self, table: str) -> int:
        """Rows of a table after loading; of lineitem, the orders that it belongs to."""
        full = {
            "supplier": 10_000,
            "customer": 150_000,
            "part": 200_000,
            "partsupp": 200_000 * SUPPLIERS,
        }.get(table, 1_500_000)
        fixed = {"region": len(REGIONS), "nation": len(NATIONS)}
        return fixed.get(table) or round(full * self.scale)

    def load(self, rng: np.random.Generator) -> Iterator[tuple[str, pa.Table]]:
        """All tables."""
        for table in TABLES[:6]:
            yield table, self.rows(table, np.arange(self.count(table)), rng)
        orders, lines = self.orders(np.arange(self.count("orders")), rng)
        yield "orders", orders
        yield "lineitem", lines

    def rows(self, table: str, number: Ints, rng: np.random.Generator) -> pa.Table:
        """The rows of these numbers, in any table but orders and lineitem."""
        build: dict[str, Callable[[Ints, np.random.Generator], list[pa.Array]]] = {
            "region": self._region,
            "nation": self._nation,
            "supplier": self._supplier,
            "customer": self._customer,
            "part": self._part,
            "partsupp": self._partsupp,
        }
        return _table(table, build[table](number, rng))

    def orders(self, number: Ints, rng: np.random.Generator) -> tuple[pa.Table, pa.Table]:
        """Orders and all their lines."""
        day = rng.integers(_FIRST_DAY, _LAST_DAY + 1, len(number))
        counts = line_count(number)
        ends = np.cumsum(counts)
        line = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        owner = np.repeat(np.arange(len(number)), counts)
        lines, charged, shipped = self._lines(number[owner], line, day[owner], rng)
        total = np.bincount(owner, charged, len(number)).astype(np.int64)
        done = np.bincount(owner, shipped, len(number)).astype(np.int64)
        status = np.where(done == counts, 0, np.where(done == 0, 1, 2))
        return _table("orders", self._order(number, day, total, status, rng)), lines

    def lines(self, number: Ints, line: Ints, rng: np.random.Generator) -> pa.Table:
        """Single lines (from 0) of orders, as if the order had been placed on any day."""
        return self._lines(number, line, rng.integers(_FIRST_DAY, _LAST_DAY + 1, len(number)), rng)[
            0
        ]

    def _order(
        self, number: Ints, day: Ints, total: Ints, status: Ints, rng: np.random.Generator
    ) -> list[pa.Array]:
        customers = self.count("customer")
        # a third of them buys nothing
        buyer = rng.integers(0, max(1, customers // 3), len(number)) * 3 + rng.integers(
            1, 3, len(number)
        )
        return [
            pa.array(order_key(number)),
            pa.array(buyer),
            pa.array(["F", "O", "P"]).take(pa.array(status)),
            _money(total),
            _date(day),
            _pick(rng, _PRIORITIES, len(number)),
            _numbered("Clerk#", 9, rng.integers(1, max(2, round(1_000 * self.scale)), len(number))),
            pa.array(np.zeros(len(number)), pa.int32()),
            _comments(rng, len(number), "special packages wake requests"),
        ]

    def _lines(
        self, number: Ints, line: Ints, day: Ints, rng: np.random.Generator
    ) -> tuple[pa.Table, Ints, npt.NDArray[np.bool_]]:
        """Rows, what each one charges in cents, and whether it has been shipped."""
        n = len(number)
        part = rng.integers(1, self.count("part") + 1, n)
        quantity = np.where(_large(number), rng.integers(40, 51, n), rng.integers(1, 51, n))
        price, discount, tax = (
            quantity * _retail(part),
            rng.integers(0, 11, n),
            rng.integers(0, 9, n),
        )
        ship, commit = day + rng.integers(1, 122, n), day + rng.integers(30, 91, n)
        receipt = ship + rng.integers(1, 31, n)
        flag = np.where(receipt <= _TODAY, rng.integers(0, 2, n), 2)
        shipped = ship <= _TODAY
        columns = [
            pa.array(order_key(number)),
            pa.array(part),
            pa.array(self._supplier_of(part, rng.integers(0, SUPPLIERS, n))),
            pa.array(line + 1, pa.int32()),
            *(_money(cents) for cents in (quantity * 100, price, discount, tax)),
            pa.array(["R", "A", "N"]).take(pa.array(flag)),
            pc.if_else(pa.array(shipped), "F", "O"),
            *(_date(days) for days in (ship, commit, receipt)),
            _pick(rng, _INSTRUCTIONS, n),
            _pick(rng, _MODES, n),
            _comments(rng, n),
        ]
        return (
            _table("lineitem", columns),
            price * (100 - discount) * (100 + tax) // 10_000,
            shipped,
        )

    def _region(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        return [
            pa.array(number, pa.int32()),
            pa.array(REGIONS).take(pa.array(number)),
            _comments(rng, len(number)),
        ]

    def _nation(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        """One nation in three has moved to another region when its row is made again."""
        at_home = np.array([region for _, region in NATIONS])[number]
        moved = (rng.random(len(number)) < 1 / 3) & (len(number) < len(NATIONS))
        region = np.where(moved, rng.integers(0, len(REGIONS), len(number)), at_home)
        names = pa.array([name for name, _ in NATIONS]).take(pa.array(number))
        return [
            pa.array(number, pa.int32()),
            names,
            pa.array(region, pa.int32()),
            _comments(rng, len(number)),
        ]

    def _supplier(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        nation = rng.integers(0, len(NATIONS), len(number))
        return [
            pa.array(number + 1),
            _numbered("Supplier#", 9, number + 1),
            _address(rng, len(number)),
            pa.array(nation, pa.int32()),
            _phone(rng, nation),
            _money(rng.integers(-99_999, 1_000_000, len(number))),
            _comments(rng, len(number), "Customer insist on Complaints", 20),
        ]

    def _customer(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        nation = rng.integers(0, len(NATIONS), len(number))
        return [
            pa.array(number + 1),
            _numbered("Customer#", 9, number + 1),
            _address(rng, len(number)),
            pa.array(nation, pa.int32()),
            _phone(rng, nation),
            _money(rng.integers(-99_999, 1_000_000, len(number))),
            _pick(rng, _SEGMENTS, len(number)),
            _comments(rng, len(number)),
        ]

    def _part(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        n = len(number)
        brand, container = rng.integers(0, len(_BRANDS), n), rng.integers(0, len(_CONTAINERS), n)
        asked, kind = rng.random(n) < 0.1, rng.integers(0, len(_ASKED), n)
        brand = np.where(asked, np.array([_BRANDS.index(b) for b, _ in _ASKED])[kind], brand)
        container = np.where(
            asked, np.array([_CONTAINERS.index(c) for _, c in _ASKED])[kind], container
        )
        first = pc.if_else(pa.array(asked), "forest", _pick(rng, _COLORS, n))
        return [
            pa.array(number + 1),
            pc.binary_join_element_wise(first, *(_pick(rng, _COLORS, n) for _ in range(4)), " "),
            pc.binary_join_element_wise(
                "Manufacturer#", pa.array(brand // 5 + 1).cast(pa.string()), ""
            ),
            pa.array(_BRANDS).take(pa.array(brand)),
            _pick(rng, _TYPES, n),
            pa.array(np.where(asked, rng.integers(1, 6, n), rng.integers(1, 51, n)), pa.int32()),
            pa.array(_CONTAINERS).take(pa.array(container)),
            _money(_retail(number + 1)),
            _comments(rng, n),
        ]

    def _partsupp(self, number: Ints, rng: np.random.Generator) -> list[pa.Array]:
        part = number // SUPPLIERS + 1
        return [
            pa.array(part),
            pa.array(self._supplier_of(part, number % SUPPLIERS)),
            pa.array(rng.integers(1, 10_000, len(number)), pa.int32()),
            _money(rng.integers(100, 100_001, len(number))),
            _comments(rng, len(number)),
        ]

    def _supplier_of(self, part: Ints, which: Ints) -> Ints:
        """The suppliers of a part, four different ones: the steps stay below a third of all."""
        all_ = self.count("supplier")
        step = all_ // 4 + (part - 1) // all_ % max(1, all_ // 12)
        return (part + which * step) % all_ + 1


def _retail(part: Ints) -> Ints:
    """Cents."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)


def _table(table: str, columns: list[pa.Array]) -> pa.Table:
    return pa.table(columns, names=[part.split()[0] for part in COLUMNS[table].split(", ")])


def _money(cents: Ints) -> pa.Array:
    """decimal(15,2), as 128-bit numbers in one buffer."""
    words = np.empty((len(cents), 2), np.int64)
    words[:, 0], words[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words)])


def _date(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def _pick(rng: np.random.Generator, values: tuple[str, ...], count: int) -> pa.Array:
    return pa.array(values).take(pa.array(rng.integers(0, len(values), count)))


def _numbered(prefix: str, digits: int, numbers: Ints) -> pa.Array:
    padded = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(prefix, padded, "")


def _phone(rng: np.random.Generator, nation: Ints) -> pa.Array:
    parts = (nation + 10, *(rng.integers(low, low * 10, len(nation)) for low in (100, 100, 1_000)))
    return pc.binary_join_element_wise(*(pa.array(part).cast(pa.string()) for part in parts), "-")


def _address(rng: np.random.Generator, count: int) -> pa.Array:
    return pc.binary_join_element_wise(
        _pick(rng, _COLORS, count), pa.array(rng.integers(1, 1_000, count)).cast(pa.string()), " "
    )


@cache
def _pool() -> tuple[str, ...]:
    rng = np.random.default_rng(1992)
    return tuple(
        " ".join(_WORDS[i] for i in rng.integers(0, len(_WORDS), rng.integers(3, 9)))
        for _ in range(_POOL)
    )


def _comments(rng: np.random.Generator, count: int, rare: str = "", one_in: int = 50) -> pa.Array:
    """Words; one comment in `one_in` is the rare one."""
    pool = (*_pool(), rare)
    which = rng.integers(0, _POOL, count)
    return pa.array(pool).take(
        pa.array(np.where(rng.random(count) < (1 / one_in if rare else 0), _POOL, which))
    )
