#include "neff/vendor_process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "neff/vendor_memory.h"

enum { NO_WALLS = 125, NOT_STARTED = 126, SIGNALED = 128, POLL_MS = 50, MEMORY_MS = 250, LINE_MAX_BYTES = 4096 };

/* ---- namespaces -------------------------------------------------------------------------------------------------- */

static void write_map(const char *path, unsigned id) {
  char text[32];
  const int n = snprintf(text, sizeof text, "%u %u 1\n", id, id);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (write(fd, text, (size_t)n) != n) {
    /* files of others are nobody's then, which is no matter here */
  }
  close(fd);
}

/* True if the processes that this one starts have namespaces of their own. */
static bool leave_namespaces(void) {
  const int flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS;
  const unsigned uid = geteuid(), gid = getegid();
  if (!unshare(flags))
    return true;
  if (unshare(CLONE_NEWUSER | flags))
    return false;
  const int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (write(fd, "deny", 4) != 4) {
      /* then the group is not mapped */
    }
    close(fd);
  }
  write_map("/proc/self/uid_map", uid);
  write_map("/proc/self/gid_map", gid);
  return true;
}

/* ---- walls ------------------------------------------------------------------------------------------------------- */

static bool set_mount(const char *path, unsigned flags, uint64_t set, uint64_t clear) {
  struct mount_attr attr = {.attr_set = set, .attr_clr = clear};
  return !mount_setattr(AT_FDCWD, path, flags, &attr, sizeof attr);
}

/* An empty folder in memory; one that is not there needs none. */
static bool cover(const char *path, const char *options) {
  return access(path, F_OK) ? errno == ENOENT : !mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

/* In a namespace of mounts of its own.  The directory becomes a mount, so that it can be written although all else cannot. */
static bool raise_walls(const struct vendor_process *p) {
  static const char *const own[] = {"/dev/shm", "/var/tmp"};
  bool ok = !mount(p->dir, p->dir, NULL, MS_BIND, NULL) && (!p->hidden || cover(p->hidden, "size=4k,mode=755"));
  for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
    ok = cover(own[i], "size=1g,mode=1777");
  ok = ok && set_mount("/", AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0);
  ok = ok && set_mount(p->dir, 0, 0, MOUNT_ATTR_RDONLY);
  for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
    ok = access(own[i], F_OK) || set_mount(own[i], 0, 0, MOUNT_ATTR_RDONLY);
  return ok && !chdir(p->dir) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Root in a namespace could take the walls down: a program that is started without these has no capabilities. */
static void drop_capabilities(void) {
  for (unsigned long c = 0; !prctl(PR_CAPBSET_DROP, c, 0, 0, 0);)
    c++;
}

/* ---- the child --------------------------------------------------------------------------------------------------- */

/* A limit that is lower already stays. */
static void limit(__rlimit_resource_t what, rlim_t value) {
  struct rlimit r;
  if (getrlimit(what, &r))
    _exit(NOT_STARTED);
  r.rlim_max = value < r.rlim_max ? value : r.rlim_max;
  r.rlim_cur = r.rlim_max;
  if (setrlimit(what, &r))
    _exit(NOT_STARTED);
}

static _Noreturn void become_program(const struct vendor_process *p, char *const *environment) {
  limit(RLIMIT_AS, (rlim_t)p->memory_mib << 20);
  limit(RLIMIT_CORE, 0);
  if (p->has_walls)
    drop_capabilities();
  execve(p->argv[0], (char *const *)p->argv, environment);
  _exit(NOT_STARTED);
}

/* As an exit status: 128 and the number of a signal, as shells say it. */
static int exit_of(int status) {
  return WIFSIGNALED(status) ? SIGNALED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The first process of the namespaces: when it ends, the kernel ends all others there. */
static _Noreturn void be_init(const struct vendor_process *p, char *const *environment, bool is_apart) {
  int status = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* without it, the program sees the processes outside, and cannot reach them */
  if (is_apart && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && mount("proc", "/proc", "proc", 0, NULL)) {
    /* it may not be mounted here */
  }
  if (p->has_walls && !(is_apart && raise_walls(p)))
    _exit(NO_WALLS);
  const pid_t program = fork();
  if (!program)
    become_program(p, environment);
  close(1);
  close(2);
  for (pid_t ended = 0; program > 0 && ended != program;)
    ended = waitpid(-1, &status, 0);
  _exit(program < 0 ? NOT_STARTED : exit_of(status));
}

/* Leads the process group, in the directory and with the descriptors of the program. */
static _Noreturn void supervise(const struct vendor_process *p, char *const *environment, int out) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int status = 0;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (null < 0 || chdir(p->dir) || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || close_range(3, ~0U, 0))
    _exit(NOT_STARTED);
  const bool is_apart = leave_namespaces();
  const pid_t init = fork();
  if (!init)
    be_init(p, environment, is_apart);
  close(1);
  close(2);
  while (init > 0 && waitpid(init, &status, 0) < 0 && errno == EINTR) {
  }
  _exit(init < 0 ? NOT_STARTED : exit_of(status));
}

/* ---- its output -------------------------------------------------------------------------------------------------- */

/* Splits what comes into lines, and keeps the last of them. */
struct lines {
  const struct vendor_process *process;
  char line[LINE_MAX_BYTES + 1], tail[2 * VENDOR_TAIL_MAX];
  size_t n, n_tail;
};

/* Bytes that are no text become '?'. */
static void clean(char *s, size_t n) {
  for (size_t i = 0, k; i < n; i += k ? k : 1) {
    k = utf8_char(s + i, n - i);
    if (!k || (k == 1 && (unsigned char)s[i] < ' ' && s[i] != '\t'))
      s[i] = '?';
  }
}

static void end_line(struct lines *l) {
  l->line[l->n] = 0;
  clean(l->line, l->n);
  if (l->process->log)
    l->process->log(l->process->user, l->line);
  if (l->n_tail + l->n + 1 > sizeof l->tail) {
    const size_t cut = l->n_tail > VENDOR_TAIL_MAX ? l->n_tail - VENDOR_TAIL_MAX : 0;
    const char *nl = memchr(l->tail + cut, '\n', l->n_tail - cut);
    const size_t from = nl ? (size_t)(nl + 1 - l->tail) : l->n_tail;
    memmove(l->tail, l->tail + from, l->n_tail - from);
    l->n_tail -= from;
  }
  memcpy(l->tail + l->n_tail, l->line, l->n);
  l->n_tail += l->n;
  l->tail[l->n_tail++] = '\n';
  l->n = 0;
}

static void take(struct lines *l, const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (p[i] == '\n' || l->n == LINE_MAX_BYTES)
      end_line(l);
    if (p[i] != '\n' && p[i])
      l->line[l->n++] = p[i];
  }
}

/* True if the process has ended; it is not reaped, so that its process group keeps its number. */
static bool has_ended(pid_t pid) {
  siginfo_t info = {.si_pid = 0};
  return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

enum ending { ENDED, LATE, TOO_LARGE };

/* Reads until the supervisor has ended and nothing more comes, the deadline passes, or the processes have too much memory. */
static enum ending read_output(int fd, pid_t pid, int64_t deadline_ms, struct lines *l) {
  char chunk[8192];
  bool is_open = true;
  int64_t look_ms = clock_now_ms() + MEMORY_MS;
  for (int64_t now_ms; (now_ms = clock_now_ms()) < deadline_ms;) {
    if (now_ms >= look_ms && vendor_memory_exceeds(pid, l->process->memory_mib))
      return TOO_LARGE;
    look_ms = now_ms >= look_ms ? clock_now_ms() + MEMORY_MS : look_ms;
    struct pollfd p = {.fd = is_open ? fd : -1, .events = POLLIN};
    const int n = poll(&p, 1, is_open ? POLL_MS : 1);
    const ssize_t got = n > 0 ? read(fd, chunk, sizeof chunk) : -1;
    if (got > 0)
      take(l, chunk, (size_t)got);
    is_open &= n <= 0 || got > 0;
    if (got <= 0 && has_ended(pid))
      return ENDED;
  }
  return LATE;
}

/* After the processes were killed: waits until the last of them has closed its output, since freeing their memory takes a while. */
static void wait_until_closed(int fd) {
  enum { MOST_MS = 2000 };
  char chunk[8192];
  const int64_t until_ms = clock_now_ms() + MOST_MS;
  for (int64_t left_ms; (left_ms = until_ms - clock_now_ms()) > 0;) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, (int)left_ms) > 0 && read(fd, chunk, sizeof chunk) == 0)
      return;
  }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static char **environment_of(struct arena *a, const struct vendor_process *p) {
  const char *path = getenv("PATH");
  char **v = arena_new_array(a, char *, 5);
  v[0] = arena_printf(a, "PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
  v[1] = arena_printf(a, "HOME=%s", p->dir);
  v[2] = arena_printf(a, "TMPDIR=%s/tmp", p->dir);
  v[3] = arena_strdup(a, "LANG=C.UTF-8");
  v[4] = NULL;
  return v;
}

static void put_end(struct arena *a, int status, struct lines *l, struct vendor_end *out) {
  if (l->n)
    end_line(l);
  out->tail = arena_strndup(a, l->tail, l->n_tail);
  out->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (out->exit_status > SIGNALED) {
    out->signal = out->exit_status - SIGNALED;
    out->exit_status = -1;
  }
  out->lacks_walls = out->exit_status == NO_WALLS && l->process->has_walls;
  out->is_started = out->exit_status != NOT_STARTED && !out->lacks_walls;
}

enum status vendor_process_run(struct arena *a, const struct vendor_process *p, struct vendor_end *out,
                               struct error *err) {
  struct lines *l = arena_new(a, struct lines);
  char **environment = environment_of(a, p);
  const int64_t deadline_ms = clock_now_ms() + p->wall_ms;
  int fds[2], status = 0;
  *out = (struct vendor_end){.exit_status = -1};
  *l = (struct lines){.process = p};
  if (pipe2(fds, O_CLOEXEC))
    return fail(err, ST_IO, "pipe: %m");
  fflush(NULL);
  const pid_t pid = fork();
  if (!pid)
    supervise(p, environment, fds[1]);
  close(fds[1]);
  if (pid > 0) {
    setpgid(pid, pid);
    const enum ending how = read_output(fds[0], pid, deadline_ms, l);
    out->is_late = how == LATE;
    out->is_too_large = how == TOO_LARGE;
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (how != ENDED)
      wait_until_closed(fds[0]);
    put_end(a, status, l, out);
  }
  close(fds[0]);
  return pid < 0 ? fail(err, ST_IO, "fork: %m") : ST_OK;
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

enum status vendor_dir_make(struct arena *a, const char **out, struct error *err) {
  const char *in = getenv("TMPDIR");
  char *path = arena_printf(a, "%s/nkx-neuronx-cc-XXXXXX", in && *in ? in : "/tmp");
  if (!mkdtemp(path))
    return fail(err, ST_IO, "%.160s: %m", path);
  *out = path;
  if (mkdir(arena_printf(a, "%s/tmp", path), 0700)) {
    vendor_dir_remove(path);
    return fail(err, ST_IO, "%.160s/tmp: %m", path);
  }
  return ST_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
  (void)st, (void)kind, (void)at;
  remove(path);
  return 0;
}

/* A folder that may not be read is made so first. */
static int open_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
  (void)st, (void)at;
  if (kind == FTW_D || kind == FTW_DNR)
    chmod(path, 0700);
  return 0;
}

void vendor_dir_remove(const char *dir) {
  enum { FOLDERS_OPEN = 16 };
  nftw(dir, open_one, FOLDERS_OPEN, FTW_PHYS);
  nftw(dir, remove_one, FOLDERS_OPEN, FTW_PHYS | FTW_DEPTH);
}
