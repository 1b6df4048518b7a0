# SPDX-License-Identifier: MIT
"""Where it is verified: a simulated GPU with a gpreemptd and jobs of its own, jobs of a program that is given, or a process."""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

import gpreempt
from gpreempt._gpu import MEASURED, SIMULATED, Gpu, described
from gpreempt.verify import criteria
from gpreempt.verify.ways import Calls

SOON_S = 300.0  # nothing here takes that long unless it is broken, on however busy or emulated a machine
GO_ON_S = SOON_S  # the same of a job's next step
AGENT_S = 30.0  # for a job's agent, which may come to gpreemptd after the queues were seen in the driver; if it does not, the call says why
REQUEST_MS = 10
POLL_S = 0.005
THIS = os.getpid()
STEP, SHORT_STEP = "train", "infer-10ms"  # of a simulated job; the short ones are for several queues, which share the GPU
STEP_DONE = re.compile(r"queue (\d+): \d+ done, stops: (\d+)$")  # what it says of one, in --verbose
LAST_LINES = 20  # of the others that it says

PROGRAM = "GPREEMPT_PROGRAM"  # the verb says which it is
OF_A_PROCESS = ("GPREEMPT_CLASS", "AMD_QUEUE_TAG", "AMD_QUEUE_PRIORITY")  # what its own queues are
DEFAULT_SOCKETS = ("/run/gpreempt/gpreemptd.sock", "{XDG_RUNTIME_DIR}/gpreempt/gpreemptd.sock")

LONGEST_SOCKET = 107  # bytes of sun_path, with a zero after them: unix(7)


class Broken(Exception):
    """The stage itself failed: nothing can be said of what was to be verified."""


class Skip(Exception):
    """This stage cannot show it; the text says why."""


def comes(condition: Callable[[], Any], most_s: float = SOON_S) -> bool:
    """Waits for it; whether it came in that time."""
    end = time.monotonic() + most_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def until(condition: Callable[[], Any], why: str, most_s: float = SOON_S) -> None:
    if not comes(condition, most_s):
        raise Broken("not in {:g} s: {}".format(most_s, why))


def until_known(calls: Calls, pid: int, queues: int, what: str) -> None:
    """So many of a process's queues; and that they can be stopped, if that comes soon."""
    until(lambda: len(calls.queues(pid)) >= queues, "gpreemptd knows the {}'s queues".format(what))
    comes(lambda: sum(1 for queue in gpreempt.queues(pid=pid) if queue.way) >= queues, AGENT_S)


def end_with_parent() -> None:
    """In a child: nothing is left behind, however this process ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != THIS:
        os._exit(1)  # it has ended already


def child_environment() -> Dict[str, str]:
    """Without what this process has said of its own queues, as the notes' OnlineAIModel does: a job's are others."""
    return {name: value for name, value in os.environ.items() if name not in OF_A_PROCESS}


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        return one.connect_ex(path) == 0


class Job:
    """Offline work: its process, and the ids of its queues."""

    def __init__(self, pid: int, ids: List[int], process: Any = None) -> None:
        self.pid, self.ids = pid, ids
        self._process = process

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *why: Any) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def look(self) -> None:
        """When its queues are just suspended; see_still() is before they are resumed."""

    def see_still(self) -> None:
        pass

    def hold(self, seconds: float) -> float:
        """While its queues are suspended; when that time was over, by time.perf_counter()."""
        end = time.perf_counter() + seconds
        self.look()
        time.sleep(max(0.0, end - time.perf_counter()))
        done = time.perf_counter()
        self.see_still()
        return done

    def goes_on(self, stops: int) -> bool:
        """Whether each queue has work that ends after so many stops."""
        return True

    def end(self) -> Optional[Dict[str, Any]]:
        """What the GPU did with it, in its own words; None: it is another's, and goes on."""
        return None


class SimulatedJob(Job):
    """A sim-client, which says of each step that ended after how many stops of its queue that was."""

    def __init__(self, process: Any, said: Any) -> None:
        super().__init__(process.pid, [], process)
        self._stops = {}  # type: Dict[str, int]  # of each queue's last step that ended
        self._others = deque(maxlen=LAST_LINES)  # type: Deque[str]
        self._listener = threading.Thread(target=self._listen, args=(said,), daemon=True)
        self._listener.start()

    def goes_on(self, stops: int) -> bool:
        """A queue that is stopped ends no step, and steps end in their turn, or the sim-client fails: nothing is lost before one that ends."""
        def has() -> bool:
            return list(self._stops.values()).count(stops) == len(self.ids)

        comes(lambda: has() or self._process.poll() is not None, GO_ON_S)
        return has()

    def end(self) -> Optional[Dict[str, Any]]:
        return _figures(self._process, signal.SIGINT, self._errors)

    def _errors(self) -> str:
        """Of one that has ended."""
        self._listener.join(SOON_S)
        return "".join(self._others)

    def _listen(self, said: Any) -> None:
        """As it comes, and kept nowhere: of a long run it is more than a disk may have room for."""
        with said:
            for line in said:
                step = STEP_DONE.search(line)
                if step:
                    self._stops[step.group(1)] = int(step.group(2))
                else:
                    self._others.append(line)


def _figures(process: Any, number: Optional[int] = None, told: Callable[[], str] = lambda: "") -> Dict[str, Any]:
    """told: what it wrote on a standard error that another reads."""
    if number is not None and process.poll() is None:
        process.send_signal(number)
    try:
        out, errors = process.communicate(timeout=SOON_S + 100000 * (number is None))
    except subprocess.TimeoutExpired:
        process.kill()
        raise Broken("a simulated job does not end")
    if process.returncode != 0:
        raise Broken("a simulated job failed: " + (errors or told()).strip()[-500:])
    return json.loads(out)


class Worker:
    """A program that does GPU work as it is told, a line at a time: gpreempt-verify(1)."""

    def __init__(self, program: str, queues: int, role: str) -> None:
        command = [own_program(), "run", "--" + role, "--", program, str(queues)]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                                             env=child_environment(), preexec_fn=end_with_parent, start_new_session=True)  # type: Any  # has pipes
        except OSError as wrong:
            raise Broken("{}: {}".format(command[0], wrong.strerror))
        self.pid = self._process.pid
        self._name, self._queues = os.path.basename(program), queues
        self._hear("ready")
        self._began = time.monotonic()

    def ask(self, order: str) -> List[str]:
        """The answer, without its first word, which is the order's."""
        try:
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
        except OSError:
            raise Broken("{} has ended".format(self._name))
        return self._hear(order.split()[0])

    def progress(self) -> List[Tuple[str, int]]:
        """How many dispatches each queue has ended."""
        return sorted(self._numbers("progress", self._queues))

    def wait(self, order: str) -> None:
        """For one whose answer is 0 when it is done."""
        status = self._numbers(order, 1)[0][1]
        if status:
            raise Broken("{} failed to do \"{}\": {}".format(self._name, order, status))

    def end(self) -> Dict[str, Any]:
        """It ends what it has under way, and tells of all."""
        ended, elapsed_s = sum(number for _, number in self.progress()), time.monotonic() - self._began
        submitted, completed, twice, status = (number for _, number in self._numbers("end", 4))
        return {"submitted": submitted, "completed": completed, "twice": twice, "error": status, "elapsed_ns": int(elapsed_s * 1e9),
                "per_second": ended / elapsed_s}

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _numbers(self, order: str, count: int) -> List[Tuple[str, int]]:
        """The answer's, each with the name before it if it has one."""
        words = self.ask(order)
        try:
            numbers = [(name, int(number)) for name, _, number in (word.rpartition(":") for word in words)]
        except ValueError:
            numbers = []
        if len(numbers) != count:
            raise Broken("{} was to answer \"{}\" with {} and said \"{}\"".format(
                self._name, order, "a number" if count == 1 else "{} numbers".format(count), " ".join(words)))
        return numbers

    def _hear(self, word: str) -> List[str]:
        is_there = select.select([self._process.stdout], [], [], SOON_S)[0]
        words = self._process.stdout.readline().split() if is_there else []
        if words[:1] != [word]:
            raise Broken("{} was to say \"{}\" and said \"{}\"".format(self._name, word, " ".join(words)))
        return words[1:]


class OwnJob(Job):
    """Offline work of a program that accounts for itself."""

    def __init__(self, worker: Worker, ids: List[int]) -> None:
        super().__init__(worker.pid, ids)
        self._worker = worker
        self._seen = []  # type: List[Tuple[str, int]]
        self._still = 0  # times that it did nothing while it was held

    def __exit__(self, *why: Any) -> None:
        self._worker.kill()

    def progress(self) -> List[Tuple[str, int]]:
        return self._worker.progress()

    def look(self) -> None:
        self._seen = self._worker.progress()

    def see_still(self) -> None:
        self._still += self._worker.progress() == self._seen

    def end(self) -> Optional[Dict[str, Any]]:
        return dict(self._worker.end(), still=self._still)


class Requests(threading.Thread):
    """By the clock, each told to gpreemptd before it is sent; latency is from when it was to come."""

    def __init__(self, worker: Worker, rate: float, requests: int) -> None:
        super().__init__(daemon=True)
        self._worker, self._rate, self._requests = worker, rate, requests
        self._latencies = []  # type: List[float]
        self._wrong = None  # type: Optional[Broken]
        self.start()

    def run(self) -> None:
        request, began = gpreempt.online(expiry=SOON_S), time.monotonic()
        try:
            for number in range(self._requests):
                arrival = began + number / self._rate
                time.sleep(max(0.0, arrival - time.monotonic()))
                with request:
                    self._worker.wait("long {}".format(REQUEST_MS))
                    self._worker.wait("idle")
                self._latencies.append((time.monotonic() - arrival) * 1e9)
        except Broken as wrong:
            self._wrong = wrong
        finally:
            self._worker.kill()

    def served(self) -> Dict[str, Any]:
        self.join()
        if self._wrong is not None:
            raise self._wrong
        return {"submitted": self._requests, "completed": len(self._latencies), "latency_ns": criteria.figures(self._latencies)}


class Simulated:
    """Its own GPU and gpreemptd, in a folder that goes with them."""

    starts_jobs = True

    def __init__(self) -> None:
        self.device = Gpu(SIMULATED, "mi308x")
        self.number = 0  # the device's
        self._program = own_program()
        self._folder = tempfile.mkdtemp(prefix="gpreempt-verify-")
        self._socket = os.path.join(self._folder, "gpreemptd.sock")
        if len(os.fsencode(self._socket)) > LONGEST_SOCKET:
            os.rmdir(self._folder)
            raise Broken("{} is too long a path for sockets: set TMPDIR to a shorter one".format(os.path.dirname(self._folder)))
        self._gpu = os.path.join(self._folder, "gpu.sock")
        self._log = open(os.path.join(self._folder, "log"), "w")
        self._processes = []  # type: List[Any]

    def __enter__(self) -> "Simulated":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why: Any) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def daemon_pid(self) -> Optional[int]:
        return self._processes[0].pid

    def offline(self, calls: Calls, queues: int = 1) -> Job:
        job = self._job("--work", STEP if queues == 1 else SHORT_STEP, "--queues", str(queues))
        process = self._processes[-1]
        try:
            until(lambda: process.poll() is not None or len(calls.queues(process.pid)) == queues, "gpreemptd knows a job's queues")
            if process.poll() is not None:
                job.end()
                raise Broken("a simulated job ended by itself")
            job.ids = calls.queues(process.pid)
            return job
        except BaseException:
            process.kill()
            raise

    def online(self, rate: float, requests: int) -> Any:
        """A program whose requests gpreemptd is told of; served() waits for its figures."""
        return self._client("--online", "--work", "infer-10ms", "--hints", "--rate", "{:g}".format(rate), "--requests", str(requests))

    def served(self, process: Any) -> Dict[str, Any]:
        return _figures(process)

    def _start(self) -> None:
        os.environ.update(GPREEMPT_SOCKET=self._socket, GPREEMPT_QUIET="1")
        os.environ.pop("GPREEMPT_BACKEND", None)
        empty = os.path.join(self._folder, "root")
        os.mkdir(empty)  # the machine's own GPUs are none of its business
        daemon = self._run([os.path.join(os.path.dirname(self._program), "gpreemptd"), "--config", "/dev/null", "--classes", "/dev/null",
                            "--root", empty, "--socket", self._socket])
        until(lambda: daemon.poll() is not None or _listens(self._socket), "gpreemptd listens")
        gpu = self._run([self._program, "sim-gpu", "--socket", self._gpu])
        until(lambda: gpu.poll() is not None or daemon.poll() is not None or gpreempt.devices(), "gpreemptd knows the simulated GPU")
        if daemon.poll() is not None or gpu.poll() is not None:
            self._log.flush()
            with open(self._log.name, encoding="utf-8", errors="replace") as log:
                raise Broken("the simulated GPU cannot be started: " + log.read().strip()[-500:])
        self.number = gpreempt.devices()[0].device

    def _run(self, command: List[str], **more: Any) -> Any:
        """In a session of its own: a terminal's Ctrl-C is for this process alone."""
        options = dict(stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)  # type: Dict[str, Any]
        options.update(more)
        try:
            process = subprocess.Popen(command, env=child_environment(), preexec_fn=end_with_parent, start_new_session=True, **options)
        except OSError as wrong:
            raise Broken("{}: {}".format(command[0], wrong.strerror))
        self._processes.append(process)
        return process

    def _job(self, *options: str) -> SimulatedJob:
        """What it says goes into a pipe."""
        said, says = os.pipe()
        try:
            process = self._client("--offline", "--verbose", *options, stderr=says)
        except BaseException:
            os.close(said)
            raise
        finally:
            os.close(says)
        return SimulatedJob(process, open(said, encoding="utf-8", errors="replace"))

    def _client(self, *options: str, **more: Any) -> Any:
        streams = dict(dict(stderr=subprocess.PIPE), **more)  # type: Dict[str, Any]
        return self._run([self._program, "sim-client", "--gpu", self._gpu, "--json"] + list(options), stdout=subprocess.PIPE, universal_newlines=True, **streams)


class Given:
    """Somebody's process, under this machine's gpreemptd. Nobody but gpreemptd tells what became of its queues."""

    starts_jobs = False

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.device = Gpu(MEASURED, "?")
        self.number = 0  # the device's

    def __enter__(self) -> "Given":
        queues = gpreempt.queues(pid=self.pid)
        if not queues:
            raise Broken("process {} has no queue that gpreemptd knows; gpreempt list shows those there are".format(self.pid))
        self.number = queues[0].device
        self.device = described(next(one for one in gpreempt.devices() if one.device == self.number))
        return self

    def __exit__(self, *why: Any) -> None:
        pass

    @property
    def daemon_pid(self) -> Optional[int]:
        """Who listens there."""
        folder = os.environ.get("XDG_RUNTIME_DIR", "")
        paths = [os.environ.get("GPREEMPT_SOCKET")] + [path.format(XDG_RUNTIME_DIR=folder) for path in DEFAULT_SOCKETS]
        for path in paths:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                if path and one.connect_ex(path) == 0:
                    return struct.unpack("iII", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return None

    def offline(self, calls: Calls, queues: int = 1) -> Job:
        ids = calls.queues(self.pid)
        if len(ids) < queues:
            raise Skip("process {} has {} of the {} queues that it needs".format(self.pid, len(ids), queues))
        return Job(self.pid, ids[:queues])

    def online(self, rate: float, requests: int) -> Any:
        raise Skip("it needs a job and requests whose figures it can read: the simulated GPU's, or those of --job")

    def served(self, process: Any) -> Dict[str, Any]:
        raise Skip("nobody serves requests here")


class Started(Given):
    """Jobs and requests of a program that accounts for itself, under this machine's gpreemptd."""

    starts_jobs = True

    def __init__(self, program: str) -> None:
        super().__init__(0)
        found = shutil.which(program)
        if not found:
            raise Broken("--job {}: no such program".format(program))
        self._job = os.path.abspath(found)

    def __enter__(self) -> "Started":
        devices = gpreempt.devices()
        if not devices:
            raise Broken("gpreemptd knows no GPU")
        self.number, self.device = devices[0].device, described(devices[0])
        return self

    def offline(self, calls: Calls, queues: int = 1) -> Job:
        worker = Worker(self._job, queues, "offline")
        try:
            until_known(calls, worker.pid, queues, "job")
            return OwnJob(worker, calls.queues(worker.pid))
        except BaseException:
            worker.kill()
            raise

    def online(self, rate: float, requests: int) -> Any:
        worker = Worker(self._job, 1, "online")
        worker.wait("idle")
        return Requests(worker, rate, requests)

    def served(self, process: Any) -> Dict[str, Any]:
        return process.served()


def own_program() -> str:
    found = os.environ.get(PROGRAM) or shutil.which("gpreempt")
    if not found:
        raise Broken("the program gpreempt is not in the path: it is the simulated GPU. Install it, or use gpreempt verify")
    return found
