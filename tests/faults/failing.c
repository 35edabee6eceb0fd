/* failing: one call of the program that loads this fails, the first from a place that none has failed at yet.
 *
 * Preloaded into a server.  NKX_FAULTS names a file of one struct control, mapped by the tests as well.  While `armed`
 * holds a bit for a kind of call, the first call of that kind from a new site fails, as it would without memory, space or
 * descriptors; then `armed` is 0 again.  A site is the kind and the DEPTH return addresses above it, so that every caller of
 * a common helper has its turn.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DEPTH = 6, SKIPPED = 3, SITES_MAX = 1 << 16 };
enum kind { ALLOC, OPEN, READ, WRITE, SYNC, FORK, ACCEPT, MAP, SOCKET, THREAD, KINDS };

struct control {
  _Atomic uint32_t armed, failed, overflow, last_kind;
  _Atomic uint64_t last[DEPTH]; /* return addresses of what failed last */
  _Atomic uint64_t calls[KINDS];
};

static struct control *control;
static _Atomic uint64_t sites[SITES_MAX];
static __thread int inside;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("NKX_FAULTS");
  void *warm[2];
  backtrace(warm, 2); /* loads what it needs */
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p != MAP_FAILED)
    control = p;
}

static int is_new(uint64_t site) {
  site += !site;
  for (size_t i = site % SITES_MAX, n = 0; n < SITES_MAX; i = (i + 1) % SITES_MAX, n++) {
    uint64_t is = 0;
    if (atomic_compare_exchange_strong(&sites[i], &is, site))
      return 1;
    if (is == site)
      return 0;
  }
  control->overflow = 1;
  return 0;
}

/* Whether this call is the one. */
static int fails(enum kind kind) {
  void *above[DEPTH + SKIPPED];
  if (!control || inside)
    return 0;
  control->calls[kind]++;
  if (!(control->armed & 1u << kind))
    return 0;
  inside = 1;
  int n = backtrace(above, DEPTH + SKIPPED), is_it = 0;
  uint64_t site = 0x9e3779b97f4a7c15u + kind;
  for (int i = SKIPPED - 1; i < n; i++)
    site = (site ^ (uint64_t)(uintptr_t)above[i]) * 0xff51afd7ed558ccdu, site ^= site >> 32;
  if (is_new(site)) {
    uint32_t was = control->armed;
    is_it = was && atomic_compare_exchange_strong(&control->armed, &was, 0);
    if (is_it) {
      for (int i = 0; i < DEPTH; i++)
        control->last[i] = i + SKIPPED - 1 < n ? (uint64_t)(uintptr_t)above[i + SKIPPED - 1] : 0;
      control->last_kind = kind;
      control->failed++;
    }
  }
  inside = 0;
  return is_it;
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) { \
    inside++; \
    real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
    inside--; \
  }

/* ---- memory: glibc's own names, since dlsym itself allocates ---------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}
void *malloc(size_t n) {
  return fails(ALLOC) ? no_memory() : __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
  return fails(ALLOC) ? no_memory() : __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
  return fails(ALLOC) ? no_memory() : __libc_realloc(p, n);
}
int posix_memalign(void **out, size_t align, size_t n) {
  void *p = fails(ALLOC) ? NULL : __libc_memalign(align, n);
  if (p)
    *out = p;
  return p ? 0 : ENOMEM;
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

#define FAIL_AS(kind, e) \
  if (fails(kind)) { \
    errno = e; \
    return -1; \
  }

int open(const char *path, int flags, ...) {
  REAL(open)
  FAIL_AS(OPEN, EMFILE)
  __builtin_va_list v;
  __builtin_va_start(v, flags);
  int mode = flags & (O_CREAT | O_TMPFILE) ? __builtin_va_arg(v, int) : 0;
  __builtin_va_end(v);
  return real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  REAL(open64)
  FAIL_AS(OPEN, EMFILE)
  __builtin_va_list v;
  __builtin_va_start(v, flags);
  int mode = flags & (O_CREAT | O_TMPFILE) ? __builtin_va_arg(v, int) : 0;
  __builtin_va_end(v);
  return real(path, flags, mode);
}
static int is_event(int fd, size_t n);
ssize_t read(int fd, void *p, size_t n) {
  REAL(read)
  if (!(control && control->armed && is_event(fd, n)))
    FAIL_AS(READ, EIO)
  return real(fd, p, n);
}
ssize_t pread64(int fd, void *p, size_t n, off64_t at) {
  REAL(pread64)
  FAIL_AS(READ, EIO)
  return real(fd, p, n, at);
}
ssize_t recv(int fd, void *p, size_t n, int flags) {
  REAL(recv)
  FAIL_AS(READ, ECONNRESET)
  return real(fd, p, n, flags);
}
ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
  REAL(recvmsg)
  FAIL_AS(READ, EIO)
  return real(fd, m, flags);
}
/* Counters that wake a thread: the kernel has no way to fail there. */
static int is_event(int fd, size_t n) {
  char path[32], to[32] = "";
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return n == 8 && readlink(path, to, sizeof to - 1) > 0 && strstr(to, "eventfd");
}
ssize_t write(int fd, const void *p, size_t n) {
  REAL(write)
  if (!(control && control->armed && is_event(fd, n)))
    FAIL_AS(WRITE, ENOSPC)
  return real(fd, p, n);
}
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) {
  REAL(pwrite64)
  FAIL_AS(WRITE, ENOSPC)
  return real(fd, p, n, at);
}
ssize_t send(int fd, const void *p, size_t n, int flags) {
  REAL(send)
  FAIL_AS(WRITE, ECONNRESET)
  return real(fd, p, n, flags);
}
ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
  REAL(sendmsg)
  FAIL_AS(WRITE, ENOBUFS)
  return real(fd, m, flags);
}
int fsync(int fd) {
  REAL(fsync)
  FAIL_AS(SYNC, EIO)
  return real(fd);
}
int fdatasync(int fd) {
  REAL(fdatasync)
  FAIL_AS(SYNC, EIO)
  return real(fd);
}
pid_t fork(void) {
  REAL(fork)
  FAIL_AS(FORK, EAGAIN)
  return real();
}
int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags) {
  REAL(accept4)
  FAIL_AS(ACCEPT, EMFILE)
  return real(fd, a, n, flags);
}
int accept(int fd, struct sockaddr *a, socklen_t *n) {
  REAL(accept)
  FAIL_AS(ACCEPT, EMFILE)
  return real(fd, a, n);
}
int socketpair(int domain, int type, int protocol, int fds[2]) {
  REAL(socketpair)
  FAIL_AS(SOCKET, EMFILE)
  return real(domain, type, protocol, fds);
}
void *mmap64(void *p, size_t n, int prot, int flags, int fd, off64_t at) {
  REAL(mmap64)
  if (fails(MAP)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real(p, n, prot, flags, fd, at);
}
