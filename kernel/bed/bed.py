# SPDX-License-Identifier: GPL-2.0
"""Where the bed keeps what it builds, and how it builds it: a kernel, and our module against it.

    CACHE/kernel-KEY/boot/    bzImage, System.map
    CACHE/kernel-KEY/tree/    what a module is built against, and the sources of amdkfd; 200 MB
    CACHE/kernel-KEY/work-*/  tree/ by hard links, with our files in it: make finds what is still good there
    CACHE/module-KEY/         amdgpu.ko

A folder gets its name when it is complete. KEY is a hash of everything that went in.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONFIG = os.path.join(HERE, "config")
SERIES = os.path.join(ROOT, "kernel", "series")
SOFTGPU = os.path.join(ROOT, "kernel", "softgpu")
MODEL = os.path.join(ROOT, "src", "model")

AMD = "drivers/gpu/drm/amd"
AMDKFD = f"{AMD}/amdkfd"

# Changed when this file puts something else into kernel-KEY.
LAYOUT = "2"

# Every access of the module is checked; the kernel's own are not, or a process would take four times as long to start.
UNCHECKED = ["KASAN_SANITIZE=n", "UBSAN_SANITIZE=n"]

# What a module needs of the tree, as Debian's linux-headers do it, and what the series may change.
KEEP = [
    ".config", "Makefile", "Kconfig", "Kbuild", "include", "scripts", "arch/x86/include", "arch/x86/Makefile",
    "arch/x86/Makefile.um", "arch/x86/Makefile_32.cpu", "tools/objtool/objtool", AMD,
]
# Registers of parts no compute queue touches: 400 MB.
LEAVE = [f"{AMD}/include/asic_reg/{part}" for part in ("dce", "dcn", "dpcs", "mmhub", "nbio", "vcn")]

KERNEL_STEPS = 1990  # lines that make prints for the kernel, and for the module: for the percentage alone
MODULE_STEPS = 60
FULL_STEPS = 640
KERNEL_CPU_SECONDS = 1150

PR_SET_PDEATHSIG = 1
NICEST = 19

KEPT = {"kernel-": 3, "module-": 12, "series-": 6, "full-": 1}


class Failed(Exception):
    """What went wrong, in a sentence or in lines of a log."""


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.abspath(os.environ.get("GPREEMPT_CACHE") or os.path.join(base, "gpreempt"))


def say(text):
    print(text, file=sys.stderr, flush=True)


def base(word):
    """One value of kernel/BASE."""
    with open(os.path.join(ROOT, "kernel", "BASE"), encoding="utf-8") as file:
        return re.search(rf"^{word} (\S+)$", file.read(), re.MULTILINE)[1]


def tarball():
    path = f"/usr/src/{base('package')}.tar.xz"
    if not os.path.exists(path):
        raise Failed(f"{path} is not there; `tools/deps.sh vm` installs it.")
    return path


def source_version():
    """The package's version; where there is no dpkg, what tells one tarball from another."""
    command = ["dpkg-query", "-W", "-f", "${Version}", base("package")]
    with contextlib.suppress(FileNotFoundError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout:
            return done.stdout
    state = os.stat(tarball())
    return f"{state.st_size}-{state.st_mtime_ns}"


def files_below(folder):
    for where, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(where, name) for name in sorted(names))


def digest(*parts):
    """Of texts, and of folders by the names and contents of their files."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)} {part}".encode() if not os.path.isdir(part) else b"folder")
        for path in files_below(part) if os.path.isdir(part) else ():
            with open(path, "rb") as file:
                content = file.read()
            total.update(f"{os.path.relpath(path, part)} {len(content)} ".encode() + content)
    return total.hexdigest()[:16]


def kernel_folder():
    key = digest(LAYOUT, source_version(), repr(wanted()))
    return os.path.join(cache(), f"kernel-{key}")


def patches():
    names = os.listdir(SERIES) if os.path.isdir(SERIES) else []
    # 0000 is the cover letter.
    found = sorted(name for name in names if re.fullmatch(r"(?!0000)\d{4}-.*\.patch", name))
    if not found:
        raise Failed("There is no kernel/series here: only --stock can run.")
    return [os.path.join(SERIES, name) for name in found]


def module_path(patched):
    parts = [LAYOUT, os.path.basename(kernel_folder()), SOFTGPU, MODEL]
    if patched:
        parts += ["patched", digest(*map(read, patches()))]
    return os.path.join(cache(), f"module-{digest(*parts)}", "amdgpu.ko")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


@contextlib.contextmanager
def alone(name):
    """Nobody else holds the lock of that name."""
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), name), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another build is at work; waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def locked():
    """One build at a time. Whoever holds the lock may take away what an interrupted one has left."""
    with alone("lock"):
        for name in os.listdir(cache()):
            if name.endswith(".tmp"):
                shutil.rmtree(os.path.join(cache(), name), ignore_errors=True)
        yield


class Progress:
    """A percentage that moves on a terminal; a line a minute in a pipe."""

    def __init__(self, what, steps):
        self.what, self.steps = what, steps
        self.done = 0
        self.begin = self.shown = time.monotonic()
        self.moves = sys.stderr.isatty()

    def text(self):
        now = time.monotonic() - self.begin
        percent = min(99, 100 * self.done // self.steps)
        return f"{self.what}: {percent:2} %, {int(now) // 60} min {int(now) % 60:02} s"

    def step(self):
        self.done += 1
        if time.monotonic() - self.shown < (0.2 if self.moves else 60):
            return
        self.shown = time.monotonic()
        if self.moves:
            sys.stderr.write("\r" + self.text())
            sys.stderr.flush()
        else:
            say(self.text())

    def end(self):
        if self.moves:
            sys.stderr.write("\r\033[K")
        say(f"{self.what}: done in {time.monotonic() - self.begin:.0f} s")


def die_with_parent():
    """For preexec_fn: no child outlives a build or a run that is killed, and one of a nice build is as nice.

    A nice value counts within a session alone, where the kernel groups by them; a new session starts as any other.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getpriority(os.PRIO_PROCESS, 0) == NICEST and os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(NICEST))


def run(command, log, progress=None, **more):
    """Output goes to the log; its end is the error if the command fails."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True, preexec_fn=die_with_parent, **more,
        )
        try:
            for line in process.stdout:
                file.write(line)
                if progress and re.match(r"  [A-Z]+ ", line):
                    progress.step()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
        finally:
            process.wait()
    if process.returncode:
        end = read(log).splitlines()[-30:]
        raise Failed("\n".join(end) + f"\n{command[0]} failed; all of it is in {log}")


def jobs():
    return f"-j{len(os.sched_getaffinity(0))}"


def wanted():
    """What each line of our configuration asks for."""
    return re.findall(r"^(CONFIG_\w+)=(.*)$", read(CONFIG), re.MULTILINE)


def check_config(tree):
    have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", read(os.path.join(tree, ".config")), re.MULTILINE))
    wrong = [f"{name}={value}, is {have.get(name, 'n')}" for name, value in wanted() if have.get(name, "n") != value]
    if wrong:
        raise Failed("\n".join(["kernel/bed/config asks for what this kernel cannot do:", *wrong]))


def keep(tree, kernel):
    """Of a built source tree, what is worth keeping."""
    target = os.path.join(kernel, "tree")
    leave = {os.path.join(tree, path) for path in LEAVE}

    def unwanted(folder, names):
        # Objects of the kernel itself; our module's are made elsewhere.
        return [name for name in names
                if os.path.join(folder, name) in leave or name.endswith((".o", ".a", ".cmd"))]

    for path in KEEP:
        source = os.path.join(tree, path)
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(target, path), symlinks=True, ignore=unwanted)
        else:
            shutil.copy2(source, os.path.join(target, path))
    shutil.copy2(os.path.join(tree, "vmlinux.symvers"), os.path.join(target, "Module.symvers"))
    boot = os.path.join(kernel, "boot")
    os.makedirs(boot)
    shutil.copy2(os.path.join(tree, "arch/x86/boot/bzImage"), boot)
    shutil.copy2(os.path.join(tree, "System.map"), boot)


def build_kernel(kernel):
    if source_version() != base("version"):
        say(f"{base('package')} here is {source_version()}; the bed was last tried with {base('version')}.")
    minutes = -(-KERNEL_CPU_SECONDS // (60 * len(os.sched_getaffinity(0)))) + 1
    say(f"Building the test kernel, once: about {minutes} minutes and 3 GB of disk while it runs, in {cache()}")
    # A name of its own: children of a build that was killed may still write to that one's.
    temporary = tempfile.mkdtemp(prefix=os.path.basename(kernel) + ".", suffix=".tmp", dir=cache())
    os.chmod(temporary, 0o755)
    log = os.path.join(cache(), "kernel.log")
    tree = os.path.join(temporary, "source")
    os.mkdir(tree)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    try:
        say("unpacking")
        run(["tar", "-xJf", tarball(), "-C", tree, "--strip-components=1"], log)
        make = ["make", "-C", tree, "ARCH=x86_64"]
        run([*make, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"], log)
        check_config(tree)
        progress = Progress("kernel", KERNEL_STEPS)
        run([*make, *UNCHECKED, jobs(), "bzImage", "modules_prepare"], log, progress)
        progress.end()
        keep(tree, temporary)
        shutil.rmtree(tree)
        os.rename(temporary, kernel)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def touched(patch):
    """The files of a patch that are compiled here. The kernel's image is never patched, and Documentation is not in the tree."""
    names = {name for pair in re.findall(r"^diff --git a/(\S+) b/(\S+)$", read(patch), re.MULTILINE) for name in pair}
    names = sorted(name for name in names if not name.startswith("Documentation/"))
    others = [name for name in names if not name.startswith((f"{AMD}/", "include/uapi/"))]
    if others:
        raise Failed(f"{os.path.basename(patch)} changes {others[0]}, which is not the module's: the bed cannot build that.")
    return names


def after(tree, some, log):
    """{path: text, or None if it is gone}: the files that these patches touch, as they leave them."""
    names = sorted({name for patch in some for name in touched(patch)})
    with tempfile.TemporaryDirectory(prefix="gpreempt-series-") as folder:
        for name in names:
            if os.path.exists(os.path.join(tree, name)):
                write(os.path.join(folder, name), read(os.path.join(tree, name)))
        for patch in some:
            run(["git", "apply", "-v", "--exclude=Documentation/*", patch], log, cwd=folder,
                env={**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder), "GIT_DIR": "/nonexistent"})
        there = {name: os.path.join(folder, name) for name in names}
        return {name: read(path) if os.path.exists(path) else None for name, path in there.items()}


def lay(tree, work, files):
    """Make work what tree is, but for these files, whatever was laid there before."""
    record = os.path.join(work, ".laid")
    names = {*files, *(read(record).split() if os.path.exists(record) else [])}
    write(record, "\n".join(names))
    for name in sorted(names):
        stock = os.path.join(tree, name)
        write(os.path.join(work, name), files[name] if name in files else read(stock) if os.path.exists(stock) else None)
    write(record, "\n".join(files))


def work_folder(kernel, name):
    work = os.path.join(kernel, name)
    if not os.path.isdir(work):
        temporary = work + ".tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(os.path.join(kernel, "tree"), temporary, symlinks=True, copy_function=os.link)
        os.rename(temporary, work)
    return work


def write(path, text):
    """Only what differs, because make goes by the time of a file; never through a hard link. None: it is to be gone."""
    if text is not None and os.path.exists(path) and read(path) == text:
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    if text is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def put(source, target):
    """What is gone in the source goes in the target."""
    os.makedirs(target, exist_ok=True)
    names = {os.path.relpath(path, source) for path in files_below(source)}
    for path in list(files_below(target)):
        name = os.path.relpath(path, target)
        if name.endswith((".c", ".h")) and name not in names:
            os.unlink(path)
    for name in sorted(names):
        write(os.path.join(target, name), read(os.path.join(source, name)))


def build_module(kernel, path, patched):
    log = os.path.join(cache(), "module.log")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    tree, work = os.path.join(kernel, "tree"), work_folder(kernel, "work-patched" if patched else "work-stock")
    lay(tree, work, after(tree, patches() if patched else [], log))
    amdkfd = os.path.join(work, AMDKFD)
    put(SOFTGPU, os.path.join(amdkfd, "softgpu"))
    put(MODEL, os.path.join(amdkfd, "model"))
    kbuild = os.path.join(amdkfd, "softgpu", "Kbuild")
    if not os.path.exists(kbuild):
        raise Failed("There is no kernel/softgpu/Kbuild.")
    shutil.copy2(kbuild, os.path.join(amdkfd, "Kbuild"))
    progress = Progress("module", MODULE_STEPS)
    run(["make", "-C", work, "ARCH=x86_64", jobs(), f"M={amdkfd}", f"SOFTGPU_SRC={amdkfd}/softgpu",
         f"MODEL_SRC={amdkfd}/model", "modules"], log, progress)
    progress.end()
    temporary = os.path.dirname(path) + ".tmp"
    os.makedirs(temporary)
    shutil.copy2(os.path.join(amdkfd, "amdgpu.ko"), temporary)
    os.rename(temporary, os.path.dirname(path))


def unresolved(module, *symvers):
    """Symbols that a module wants and that nobody in these lists has."""
    have = {line.split()[1] for path in symvers for line in read(path).splitlines()}
    wants = subprocess.run(["nm", "-u", module], capture_output=True, text=True, check=True).stdout.split()
    return sorted({name for name in wants if name != "U"} - have)


def build_full(tree, kernel, log):
    """amdgpu.ko in an unpacked tree, with the series."""
    for patch in patches():
        run(["git", "apply", "-v", patch], log, cwd=tree, env={**os.environ, "GIT_DIR": "/nonexistent"})
    make = ["make", "-C", tree, "ARCH=x86_64"]
    run([*make, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"], log)
    check_config(tree)
    progress = Progress("amdgpu", FULL_STEPS)
    # modpost does not know what the kernel itself exports, which is not built here; we look after it.
    run([*make, jobs(), "KBUILD_MODPOST_WARN=1", "modules"], log, progress)
    progress.end()
    missing = unresolved(os.path.join(tree, AMD, "amdgpu/amdgpu.ko"), os.path.join(tree, "modules-only.symvers"),
                         os.path.join(kernel, "tree/Module.symvers"))
    if missing:
        raise Failed("amdgpu.ko wants what nobody has: " + " ".join(missing))


def check_full():
    """Compiles and links the whole amdgpu.ko with the series, from the whole source; nothing is kept of it."""
    kernel = build()[0].rpartition("/boot/")[0]
    log = os.path.join(cache(), "full.log")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    with tempfile.TemporaryDirectory(prefix="full-", dir=cache()) as tree:
        say("unpacking")
        run(["tar", "-xJf", tarball(), "-C", tree, "--strip-components=1"], log)
        build_full(tree, kernel, log)


def forget_old():
    for kind, kept in KEPT.items():
        folders = [os.path.join(cache(), name) for name in os.listdir(cache()) if name.startswith(kind)]
        for folder in sorted(folders, key=os.path.getmtime)[:-kept]:
            shutil.rmtree(folder, ignore_errors=True)


def build(patched=False):
    """(bzImage, amdgpu.ko), built if need be."""
    kernel, module = kernel_folder(), module_path(patched)
    image = os.path.join(kernel, "boot", "bzImage")
    if os.path.exists(image) and os.path.exists(module):
        return image, module
    with locked():
        if not os.path.exists(image):
            build_kernel(kernel)
        if not os.path.exists(module):
            build_module(kernel, module, patched)
            forget_old()
    return image, module
