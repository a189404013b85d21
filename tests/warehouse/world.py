"""A world: sources, a spool, a view that is durable, and a process that runs an algorithm.

Each event is one step of somebody; `step` chooses among those that are possible. A crash may come
before any event. What is in the process is lost then; what it was about to write to the spool may
be there or not, and so may the actions that were on their way to the view. Some of them arrive
only later, from the process that should be gone: the number of records that they expect in the
view tells them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from belvedere.errors import SourceError
from belvedere.warehouse.evaluation import Choose
from belvedere.warehouse.knowledge import Knowledge
from belvedere.warehouse.machine import Apply, Machine, Transaction
from belvedere.warehouse.net import net
from belvedere.warehouse.processor import Found, Processor, Subquery, Todo
from belvedere.warehouse.rows import Key, Row, Shape
from belvedere.warehouse.rules import ALL, Rules
from tests.warehouse.reference import Content, evaluate
from tests.warehouse.sources import SimulatedSource, Tables

Begin = Callable[[Shape, Mapping[str, str], Rules, Knowledge], Machine]
CRASHES = 3
_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """How likely is what."""

    lag: float = 0.0  # that a commit is logged before it is visible
    stagger: bool = False  # parts of global transactions commit at different moments
    crash: float = 0.0  # before each event
    bias: float = 0.5  # how much more often sources commit than others act


@dataclass(frozen=True, slots=True)
class Care:
    """What processes owe to crashes: with one off, some schedule must show a wrong view."""

    spool_first: bool = True  # a source may forget only what is durable in the spool
    one_record: bool = True  # the view and the positions that it covers change together
    expected: bool = True  # a process that was replaced writes nothing


ALL_CARE = Care()


@dataclass(slots=True)
class DurableView:
    """What a crash leaves of the view."""

    rows: Counter[Row]
    begin: Apply
    records: int = 0

    def rows_of(self, shape: Shape) -> _Rows:
        return _Rows(shape, self.rows)


@dataclass(slots=True)
class _Rows:
    shape: Shape
    rows: Counter[Row]

    def rows_with(self, member: int, keys: Collection[Key]) -> Iterable[Row]:
        key_of = self.shape.key_shown(member)
        return [row for row in self.rows if key_of(row) in keys]

    def counts(self, rows: Collection[Row]) -> Iterable[int]:
        return [self.rows[row] for row in rows]


@dataclass(slots=True)
class World:
    shape: Shape
    initial: Tables
    transactions: list[Transaction]  # in the order of commits, the parts of a global one together
    begin: Begin
    random: Random
    schedule: Schedule = Schedule()
    rules: Rules = ALL
    care: Care = ALL_CARE
    choose: Choose | None = None  # next_source; else at random
    crashes: int = 0
    restarts: int = 0
    asked: int = 0
    broken: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    sources: dict[str, SimulatedSource] = field(init=False)
    left: dict[str, list[Transaction]] = field(init=False)
    spool: dict[str, list[Transaction]] = field(init=False)
    view: DurableView = field(init=False)
    states: list[Content] = field(init=False)
    process: Processor = field(init=False)
    _received: dict[str, int] = field(init=False)
    _confirmed: dict[str, int] = field(init=False)
    _inbox: dict[str, list[Subquery]] = field(init=False)
    _answers: dict[str, list[tuple[Subquery, Found]]] = field(init=False)
    _applying: list[tuple[int, Apply]] = field(init=False)  # by the process that runs
    _late: list[list[tuple[int, Apply]]] = field(init=False)  # by each process before it
    _expected: int = field(init=False)  # records of the view, with those on their way

    def __post_init__(self) -> None:
        names = self.shape.sources
        own = {
            s: {n: self.initial[n] for n, m in enumerate(self.shape.members) if m.source == s}
            for s in names
        }
        self.sources = {s: SimulatedSource(s, self.shape, own[s]) for s in names}
        self.left = {s: [t for t in self.transactions if t.source == s] for s in names}
        self.spool = {s: [] for s in names}
        self._confirmed = dict.fromkeys(names, 0)
        self._inbox, self._answers = {s: [] for s in names}, {s: [] for s in names}
        self._late = []
        first = evaluate(self.shape, self.initial)
        self.states = [first]
        self.view = DurableView(Counter(dict(first)), Apply((), dict.fromkeys(names, "0")))
        self.start()

    # ---------------------------------------------------------------- the process

    def start(self) -> None:
        """From what is durable: the view, its positions, and the spool behind them."""
        covered = self.view.begin.covered
        self.process = Processor(
            self.shape,
            self.begin(self.shape, covered, self.rules, self),
            lambda source, position, other: int(position) >= int(other),
            str(self.restarts),
            self.view.begin,
            self.choose or self.random.choice,
            self.rules,
            self.random.choice((2, 1_000)) if self.schedule.crash else 1_000,
        )
        self._received = {s: int(covered[s]) for s in self.shape.sources}
        self._applying = []
        self._expected = self.view.records

    def take(self, todo: Iterable[Todo]) -> None:
        for one in todo:
            if isinstance(one, Apply):
                self._applying.append((self._expected, one))
                self._expected += 1
            else:
                self._inbox[one.source].append(one)

    def crash(self) -> None:
        """Of the actions on their way some have arrived, the others are lost, or come late."""
        self.crashes += 1
        while self._applying and self.random.random() < 0.5:
            self.counts["crashes after an apply"] += 1
            self.apply("")
        if self._applying and self.random.random() < 0.5:
            self.counts["late applies"] += 1
            self._late.append(self._applying)
        if self._applying and not self.care.one_record:
            self.counts["half an apply"] += 1
            self._write(self._applying[0][1], rows=False)
        self._restart()

    def crash_in_append(self, source: str) -> None:
        """The record is in the spool, or it is not; nobody was told."""
        self.crashes += 1
        if self.random.random() < 0.5:
            self.counts["crashes after an append"] += 1
            self._append(source)
        else:
            self.counts["crashes before an append"] += 1
            if not self.care.spool_first:
                self._confirmed[source] = self._spooled(source) + 1
        self._restart()

    def _restart(self) -> None:
        self.asked += self.process.asked
        self.restarts += 1
        self.start()

    def row(self, member: int, key: Key) -> Row | None:
        """What the process may know from the view."""
        if self._applying:
            return None
        return next(iter(self.view.rows_of(self.shape).rows_with(member, [key])), None)

    # ---------------------------------------------------------------- events

    def events(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for name, source in self.sources.items():
            followed = self._spooled(name)
            happens = {
                "commit": self.schedule.stagger and self.left[name],
                "show": source.hidden(),
                "append": followed < len(source.committed),
                "receive": self._unread(name),
                "evaluate": self._inbox[name],
                "answer": self._answers[name],
            }
            found += [(kind, name) for kind, possible in happens.items() if possible]
        found += [("apply", "")] * bool(self._applying) + [("late", "")] * bool(self._late)
        found += [("due", "")] * self.process.machine.is_held
        if not self.schedule.stagger and any(self.left.values()):
            found += [("commit", "")] * max(1, round(4 * self.schedule.bias))
        return found

    def run(self) -> World:
        for _ in range(_LIMIT):
            events = self.events()
            if not events or self.broken:
                break
            self.step(*self.random.choice(events))
        else:
            raise AssertionError("the world does not come to rest")
        self.asked += self.process.asked
        return self

    def step(self, kind: str, name: str) -> None:
        if self.crashes < CRASHES and self.random.random() < self.schedule.crash:
            if kind == "append":
                self.crash_in_append(name)
            else:
                self.crash()
            return
        try:
            getattr(self, kind)(name)
        except SourceError as error:
            self.broken = str(error)
        except (IndexError, KeyError) as error:  # without a rule a process may break down
            if self.rules == ALL:
                raise
            self.broken = repr(error)

    def commit(self, name: str) -> None:
        """One transaction at one source, or everywhere at once."""
        if name:
            parts = [self.left[name][0]]
        else:
            order = [t for t in self.transactions if t in self.left[t.source]]
            parts = [t for t in order if _whole(t) == _whole(order[0])]
        for part in parts:
            self.left[part.source].remove(part)
            shown = self.random.random() >= self.schedule.lag
            source = self.sources[part.source]
            source.commit(part, shown and not source.hidden())

    def show(self, name: str) -> None:
        source = self.sources[name]
        source.visible.add(self.random.choice(source.hidden()).id)

    def append(self, name: str) -> None:
        self._append(name)
        self._confirmed[name] = self._spooled(name)

    def receive(self, name: str) -> None:
        transaction = self._unread(name)[0]
        self._received[name] = int(transaction.position)
        self.take(self.process.received(transaction))

    def evaluate(self, name: str) -> None:
        subquery = self._inbox[name].pop(0)
        self._answers[name].append((subquery, self.sources[name].evaluate(subquery.wanted)))

    def answer(self, name: str) -> None:
        subquery, found = self._answers[name].pop(0)
        self.take(self.process.answered(subquery, found))

    def due(self, name: str) -> None:
        self.take(self.process.due())

    def apply(self, name: str) -> None:
        """A process whose record is refused was replaced, or was late itself: it begins again."""
        if not self._write_expected(self._applying.pop(0)):
            self.counts["conflicts"] += 1
            self._restart()

    def late(self, name: str) -> None:
        """A process that should be gone writes one record after the other, until one is refused: if
        it went on then, a later record could expect what others have written.
        """
        process = self._late[0]
        written = self._write_expected(process.pop(0))
        self.counts["late applies written" if written else "late applies refused"] += 1
        if not written or not process:
            self._late.remove(process)

    # ---------------------------------------------------------------- what is durable

    def _spooled(self, name: str) -> int:
        """Where the source is followed from: behind the spool, or what was confirmed by mistake."""
        last = self.spool[name][-1].position if self.spool[name] else "0"
        return max(int(last), self._confirmed[name])

    def _unread(self, name: str) -> list[Transaction]:
        return [t for t in self.spool[name] if int(t.position) > self._received[name]]

    def _append(self, name: str) -> None:
        self.spool[name].append(self.sources[name].committed[self._spooled(name)])

    def _write_expected(self, record: tuple[int, Apply]) -> bool:
        expected, apply = record
        if self.care.expected and expected != self.view.records:
            return False
        self._write(apply)
        return True

    def _write(self, apply: Apply, rows: bool = True) -> None:
        if rows:
            now = self.view.rows
            now.update(net(self.shape, apply.actions, self.view.rows_of(self.shape)))
            self.view.rows = +now
        self.view.begin = apply
        self.view.records += 1
        state = frozenset(self.view.rows.items())
        if state != self.states[-1]:
            self.states.append(state)


def _whole(transaction: Transaction) -> str:
    return transaction.gid or transaction.id
