"""The driver of the soak, `belvedere run` on a Spark cluster, started again whenever it ends: what
a supervisor does.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

_BELVEDERE = [sys.executable, "-c", "from belvedere.cli import main; main()"]
_LAST_EPOCH = 120  # seconds


class Driver(threading.Thread):
    """`killed` and `ended` count how often it was killed, and ended by itself."""

    def __init__(self, url: str, master: str, log: Path) -> None:
        super().__init__(name="supervisor", daemon=True)
        self._command = [*_BELVEDERE, "--db", url, "run", "--master", master]
        self._log, self._lock = log, threading.Lock()
        self._is_over = False
        self.killed = self.ended = 0
        self._process = self._start()
        self.start()

    def run(self) -> None:
        while True:
            self._process.wait()
            with self._lock:
                if self._is_over:
                    return
                if self._process.returncode != -signal.SIGKILL:
                    self.ended += 1
                self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output)

    def kill(self) -> None:
        with self._lock:
            self._process.send_signal(signal.SIGKILL)
            self.killed += 1

    def stop(self) -> None:
        with self._lock:
            self._is_over = True
            self._process.terminate()
        try:
            self._process.wait(_LAST_EPOCH)
        except subprocess.TimeoutExpired:  # it waits for something that is broken: said before
            self._process.kill()

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]
