/* channels: ways in which two jobs of one machine might tell each other a bit, tried by both from inside.
 *
 * The sender calls channel_put again and again while it holds a bit; the receiver calls channel_get once, which waits for
 * up to WAIT_MS where the channel is an event.  Both are plain system calls, so that the same library also shows, in two
 * processes without a jail, that what it tries does carry bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 200, PAGE = 4096, PIDS_MAX = 64, PORT = 27431 };

int channel_count(void);
const char *channel_name(int c);
void channel_setup(const char *tag, const char *file, const int *pids, int n_pids);
void channel_put(int c, int bit);
int channel_get(int c);
long channel_spin(int ms);

static struct {
  int key;                    /* of System V's tables, ports and the like */
  char tag[64];               /* of whatever has a name */
  char tmp[96], shared[256];  /* a path of our own; a file that both can read */
  int pids[PIDS_MAX], n_pids; /* who the other might be */
  int fd;                     /* what put has made and must stay open */
} its = {.fd = -1};

void channel_setup(const char *tag, const char *file, const int *pids, int n_pids) {
  its.n_pids = n_pids < PIDS_MAX ? n_pids : PIDS_MAX;
  memcpy(its.pids, pids, (size_t)its.n_pids * sizeof *pids);
  snprintf(its.tag, sizeof its.tag, "%s", tag);
  snprintf(its.tmp, sizeof its.tmp, "/tmp/%s", tag);
  snprintf(its.shared, sizeof its.shared, "%s", file);
  its.key = 0x4e4b;
  for (const char *p = tag; *p; p++)
    its.key = (its.key * 31 + *p) & 0x7fffffff;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int shared_fd(void) {
  return open(its.shared, O_RDONLY);
}

/* ---- System V ------------------------------------------------------------------------------------------------------ */

static void put_shm(int bit) {
  int id = shmget(its.key, PAGE, IPC_CREAT | 0666);
  char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
  if (p != (void *)-1)
    *p = (char)('0' + bit), shmdt(p);
}
static int get_shm(void) {
  int id = shmget(its.key, 0, 0);
  char *p = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
  int bit = p == (void *)-1 ? -1 : *p - '0';
  shmctl(id, IPC_RMID, NULL);
  return bit;
}
static void put_msg(int bit) {
  int id = msgget(its.key, IPC_CREAT | 0666);
  struct {
    long type;
  } m = {1 + bit};
  if (id >= 0)
    msgsnd(id, &m, 0, IPC_NOWAIT);
}
static int get_msg(void) {
  int id = msgget(its.key, 0);
  struct {
    long type;
  } m;
  int bit = id < 0 || msgrcv(id, &m, 0, 0, IPC_NOWAIT) < 0 ? -1 : (int)m.type - 1;
  msgctl(id, IPC_RMID, NULL);
  return bit;
}
static void put_sem(int bit) {
  int id = semget(its.key, 1, IPC_CREAT | 0666);
  if (id >= 0)
    semctl(id, 0, SETVAL, bit);
}
static int get_sem(void) {
  int id = semget(its.key, 1, 0), bit = id < 0 ? -1 : semctl(id, 0, GETVAL);
  semctl(id, 0, IPC_RMID);
  return bit;
}

/* ---- names of files ------------------------------------------------------------------------------------------------ */

static void write_bit(const char *path, int bit) {
  int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0666);
  char byte = (char)('0' + bit);
  if (fd >= 0 && write(fd, &byte, 1) == 1)
    close(fd);
}
static int read_bit(const char *path) {
  int fd = open(path, O_RDONLY | O_NONBLOCK);
  char byte;
  int bit = fd >= 0 && read(fd, &byte, 1) == 1 ? byte - '0' : -1;
  if (fd >= 0)
    close(fd);
  return bit;
}
static const char *dev_shm(void) {
  static char path[96];
  snprintf(path, sizeof path, "/dev/shm/%s", its.tag);
  return path;
}
static void put_file(int bit) {
  write_bit(its.tmp, bit);
}
static int get_file(void) {
  return read_bit(its.tmp);
}
static void put_dev_shm(int bit) {
  write_bit(dev_shm(), bit);
}
static int get_dev_shm(void) {
  return read_bit(dev_shm());
}
static void put_fifo(int bit) {
  mkfifo(its.tmp, 0666);
  if (its.fd < 0)
    its.fd = open(its.tmp, O_RDWR | O_NONBLOCK);
  char byte = (char)('0' + bit);
  if (its.fd >= 0 && write(its.fd, &byte, 1) < 0)
    return;
}
static void put_mode(int bit) {
  chmod(its.shared, bit ? 0600 : 0644);
}
static int get_mode(void) {
  struct stat s;
  return stat(its.shared, &s) ? -1 : (s.st_mode & 0777) == 0600;
}
static void put_mtime(int bit) {
  struct timespec t[2] = {{1 + bit, 0}, {1 + bit, 0}};
  utimensat(AT_FDCWD, its.shared, t, 0);
}
static int get_mtime(void) {
  struct stat s;
  return stat(its.shared, &s) ? -1 : s.st_mtime == 2;
}
static void put_attribute(int bit) {
  setxattr(its.shared, "user.x", bit ? "1" : "0", 1, 0);
}
static int get_attribute(void) {
  char byte;
  return getxattr(its.shared, "user.x", &byte, 1) == 1 ? byte - '0' : -1;
}
/* Reading may leave a time behind. */
static void put_atime(int bit) {
  char byte;
  int fd = bit ? shared_fd() : -1;
  if (fd >= 0 && pread(fd, &byte, 1, 0) == 1)
    close(fd);
}
static int get_atime(void) {
  struct stat s, t;
  if (stat(its.shared, &s))
    return -1;
  usleep(WAIT_MS * 1000);
  return stat(its.shared, &t) ? -1 : memcmp(&s.st_atim, &t.st_atim, sizeof s.st_atim) != 0;
}
static int mq(int flags) {
  return (int)syscall(SYS_mq_open, its.tag, flags, 0666, NULL);
}
static void put_mq(int bit) {
  int q = mq(O_RDWR | O_CREAT | O_NONBLOCK);
  char byte = (char)bit;
  if (q >= 0)
    syscall(SYS_mq_timedsend, q, &byte, 1, 0, NULL), close(q);
}
static int get_mq(void) {
  int q = mq(O_RDONLY | O_NONBLOCK);
  static char room[1 << 16];
  int bit = q >= 0 && syscall(SYS_mq_timedreceive, q, room, sizeof room, NULL, NULL) == 1 ? room[0] : -1;
  syscall(SYS_mq_unlink, its.tag);
  return bit;
}

/* ---- locks ---------------------------------------------------------------------------------------------------------- */

static void put_flock(int bit) {
  if (its.fd < 0 && bit)
    flock(its.fd = shared_fd(), LOCK_EX);
}
static int get_flock(void) {
  int fd = shared_fd();
  return fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB) ? errno == EWOULDBLOCK ? 1 : -1 : 0;
}
static void lock_range(int bit, int cmd) {
  struct flock l = {.l_type = F_RDLCK, .l_len = 1};
  if (its.fd < 0 && bit)
    fcntl(its.fd = shared_fd(), cmd, &l);
}
static int see_lock(int cmd) {
  struct flock l = {.l_type = F_WRLCK, .l_len = 1};
  int fd = shared_fd();
  return fd < 0 || fcntl(fd, cmd, &l) ? -1 : l.l_type != F_UNLCK;
}
static void put_record(int bit) {
  lock_range(bit, F_SETLK);
}
static int get_record(void) {
  return see_lock(F_GETLK);
}
static void put_ofd(int bit) {
  lock_range(bit, F_OFD_SETLK);
}
static int get_ofd(void) {
  return see_lock(F_OFD_GETLK);
}
/* Who holds a lease is asked to give it up when somebody opens for writing. */
static void put_lease(int bit) {
  if (its.fd < 0 && bit)
    fcntl(its.fd = shared_fd(), F_SETLEASE, F_RDLCK);
}
static int get_lease(void) {
  int fd = open(its.shared, O_WRONLY | O_NONBLOCK);
  return fd >= 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1;
}

/* ---- keys and sockets ----------------------------------------------------------------------------------------------- */

static void put_key(int bit) {
  syscall(SYS_add_key, "user", its.tag, bit ? "1" : "0", 1, -4);
}
static int get_key(void) {
  long key = syscall(SYS_keyctl, 10, -4, "user", its.tag, 0); /* search the user's keyring */
  char byte;
  return key > 0 && syscall(SYS_keyctl, 11, key, &byte, 1) == 1 ? byte - '0' : -1;
}
static socklen_t unix_name(struct sockaddr_un *a, int is_abstract) {
  *a = (struct sockaddr_un){.sun_family = AF_UNIX};
  int n = snprintf(a->sun_path + is_abstract, sizeof a->sun_path - 1, "%s", is_abstract ? its.tag : its.tmp);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)(n + is_abstract));
}
/* Whether somebody listens there. */
static void listen_at(int bit, int type, const void *a, socklen_t n) {
  if (its.fd >= 0 || !bit)
    return;
  its.fd = socket(((const struct sockaddr *)a)->sa_family, type, 0);
  if (its.fd >= 0 && !bind(its.fd, a, n) && type == SOCK_STREAM)
    listen(its.fd, 9);
}
static int is_heard(int type, const void *a, socklen_t n) {
  int fd = socket(((const struct sockaddr *)a)->sa_family, type, 0);
  int r = fd < 0 ? -1 : !connect(fd, a, n);
  if (r == 1 && type == SOCK_DGRAM) { /* the second send tells what became of the first */
    char byte = 0;
    if (send(fd, &byte, 1, 0) < 0)
      r = 0;
    usleep(20000);
    if (send(fd, &byte, 1, 0) < 0)
      r = 0;
  }
  if (fd >= 0)
    close(fd);
  return r;
}
static void put_abstract(int bit) {
  struct sockaddr_un a;
  socklen_t n = unix_name(&a, 1);
  listen_at(bit, SOCK_STREAM, &a, n);
}
static int get_abstract(void) {
  struct sockaddr_un a;
  socklen_t n = unix_name(&a, 1);
  return is_heard(SOCK_STREAM, &a, n);
}
static void put_unix(int bit) {
  struct sockaddr_un a;
  socklen_t n = unix_name(&a, 0);
  listen_at(bit, SOCK_STREAM, &a, n);
}
static int get_unix(void) {
  struct sockaddr_un a;
  socklen_t n = unix_name(&a, 0);
  return is_heard(SOCK_STREAM, &a, n);
}
static const struct sockaddr_in *port(int more) {
  static struct sockaddr_in a;
  a = (struct sockaddr_in){.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)(PORT + more + its.key % 1000 * 8)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return &a;
}
static void put_tcp(int bit) {
  listen_at(bit, SOCK_STREAM, port(0), sizeof *port(0));
}
static int get_tcp(void) {
  return is_heard(SOCK_STREAM, port(0), sizeof *port(0));
}
static void put_udp(int bit) {
  listen_at(bit, SOCK_DGRAM, port(1), sizeof *port(1));
}
static int get_udp(void) {
  return is_heard(SOCK_DGRAM, port(1), sizeof *port(1));
}
static struct sockaddr_vm vm(void) {
  return (struct sockaddr_vm){
      .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = (unsigned)its.key % 60000 + 2000};
}
static void put_vsock(int bit) {
  struct sockaddr_vm a = vm();
  a.svm_cid = VMADDR_CID_ANY;
  listen_at(bit, SOCK_STREAM, &a, sizeof a);
}
static int get_vsock(void) {
  struct sockaddr_vm a = vm();
  return is_heard(SOCK_STREAM, &a, sizeof a);
}
static void put_netlink(int bit) {
  struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = 1};
  struct nlmsghdr m = {.nlmsg_len = sizeof m, .nlmsg_type = NLMSG_DONE, .nlmsg_seq = (uint32_t)its.key};
  if (its.fd < 0 && bit)
    its.fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
  if (its.fd >= 0)
    sendto(its.fd, &m, sizeof m, 0, (struct sockaddr *)&to, sizeof to);
}
static int get_netlink(void) {
  struct sockaddr_nl mine = {.nl_family = AF_NETLINK, .nl_groups = 1};
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  struct nlmsghdr m;
  if (fd < 0 || bind(fd, (struct sockaddr *)&mine, sizeof mine))
    return -1;
  return poll(&p, 1, WAIT_MS) == 1 && recv(fd, &m, sizeof m, 0) == sizeof m && m.nlmsg_seq == (uint32_t)its.key;
}

/* ---- processes ------------------------------------------------------------------------------------------------------ */

static volatile char told = '?'; /* at the same address in every job: they are children of one process */

static void put_memory(int bit) {
  told = (char)('0' + bit);
}
static int get_memory(void) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {(void *)&told, 1};
  for (int i = 0; i < its.n_pids; i++)
    if (process_vm_readv(its.pids[i], &here, 1, &there, 1, 0) == 1 && (byte == '0' || byte == '1'))
      return byte - '0';
  return -1;
}
static void put_name(int bit) {
  prctl(PR_SET_NAME, bit ? "bit-1" : "bit-0");
}
static int get_name(void) {
  for (int i = 0; i < its.n_pids; i++) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", its.pids[i]);
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && read(fd, name, sizeof name - 1) > 4 && !strncmp(name, "bit-", 4))
      return name[4] - '0';
  }
  return -1;
}
static void put_memfd(int bit) {
  if (its.fd < 0 && bit)
    its.fd = (int)syscall(SYS_memfd_create, its.tag, 0);
}
static int get_memfd(void) {
  for (int i = 0; i < its.n_pids; i++)
    for (int fd = 3; fd < 32; fd++) {
      char path[64], to[128] = "";
      snprintf(path, sizeof path, "/proc/%d/fd/%d", its.pids[i], fd);
      if (readlink(path, to, sizeof to - 1) > 0 && strstr(to, its.tag))
        return 1;
    }
  return its.n_pids && !access("/proc/self", F_OK) ? 0 : -1;
}
static volatile sig_atomic_t n_signals;
static void count_signal(int sig) {
  (void)sig;
  n_signals = n_signals + 1;
}
static void put_signal(int bit) {
  for (int i = 0; bit && i < its.n_pids; i++)
    kill(its.pids[i], SIGUSR2);
}
static int get_signal(void) {
  signal(SIGUSR2, count_signal);
  for (int64_t end = now_ms() + WAIT_MS; now_ms() < end && !n_signals;)
    usleep(1000);
  return n_signals > 0;
}
static void put_priority(int bit) {
  setpriority(PRIO_USER, 0, bit ? 3 : 2);
}
static int get_priority(void) {
  errno = 0;
  int p = getpriority(PRIO_USER, 0);
  return errno ? -1 : p == 3;
}
static void put_limit(int bit) {
  struct rlimit l = {1000 + (rlim_t)bit, RLIM_INFINITY};
  setrlimit(RLIMIT_MSGQUEUE, &l);
}
static int get_limit(void) {
  struct rlimit l;
  for (int i = 0; i < its.n_pids; i++)
    if (!prlimit(its.pids[i], RLIMIT_MSGQUEUE, NULL, &l) && (l.rlim_cur == 1000 || l.rlim_cur == 1001))
      return l.rlim_cur == 1001;
  return -1;
}
static void put_host(int bit) {
  sethostname(bit ? "bit-1" : "bit-0", 5);
}
static int get_host(void) {
  struct utsname u;
  return uname(&u) || strncmp(u.nodename, "bit-", 4) ? -1 : u.nodename[4] - '0';
}
static void put_load(int bit) {
  static char *p;
  if (bit && !p) {
    p = malloc((size_t)300 << 20);
    if (p)
      memset(p, 1, (size_t)300 << 20);
  }
}
static int get_load(void) { /* by how much memory is free: with others at work, a noisy one */
  struct sysinfo a, b;
  if (sysinfo(&a))
    return -1;
  usleep(WAIT_MS * 1000);
  return sysinfo(&b) ? -1 : a.freeram > b.freeram + ((uint64_t)100 << 20);
}

/* ---- pages and events of a file that both can read ------------------------------------------------------------------- */

static void *map_shared(void) {
  int fd = shared_fd();
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0)
    close(fd);
  return p;
}
static void put_futex(int bit) {
  static int *p;
  struct timespec t = {0, 50000000};
  if (!p)
    p = map_shared();
  if (bit && p != MAP_FAILED)
    syscall(SYS_futex, p, FUTEX_WAIT, *p, &t, NULL, 0);
}
static int get_futex(void) {
  int *p = map_shared();
  long woken = 0;
  if (p == MAP_FAILED)
    return -1;
  for (int64_t end = now_ms() + WAIT_MS; now_ms() < end && woken <= 0; usleep(1000)) {
    woken = syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (woken < 0)
      return -1;
  }
  return woken > 0;
}
/* The file's last page is either in the cache or not. */
static off_t last_page(int fd) {
  struct stat s;
  return fstat(fd, &s) ? 0 : (s.st_size - 1) / PAGE * PAGE;
}
static void put_cached(int bit) {
  char byte;
  int fd = shared_fd();
  if (fd < 0)
    return;
  if (!bit)
    posix_fadvise(fd, last_page(fd), PAGE, POSIX_FADV_DONTNEED);
  else if (pread(fd, &byte, 1, last_page(fd)) < 0)
    errno = 0;
  close(fd);
}
static int get_mincore(void) {
  int fd = shared_fd();
  unsigned char is_there = 0;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, last_page(fd));
  return p == MAP_FAILED || mincore(p, PAGE, &is_there) ? -1 : is_there & 1;
}
static int get_cachestat(void) {
  int fd = shared_fd();
  uint64_t range[2] = {(uint64_t)last_page(fd), PAGE}, stat[5] = {0};
  return syscall(451, fd, range, stat, 0) ? -1 : stat[0] > 0;
}
static int get_nowait(void) {
  int fd = shared_fd();
  char byte;
  struct iovec v = {&byte, 1};
  return preadv2(fd, &v, 1, last_page(fd), RWF_NOWAIT) == 1 ? 1 : errno == EAGAIN ? 0 : -1;
}
static int see_event(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return fd < 0 ? -1 : poll(&p, 1, WAIT_MS) == 1;
}
static int get_inotify(void) {
  int fd = inotify_init1(IN_NONBLOCK);
  if (fd >= 0 && inotify_add_watch(fd, its.shared, IN_OPEN) < 0)
    return -1;
  return see_event(fd);
}
static int get_fanotify(void) {
  int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
  if (fd >= 0 && fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, its.shared))
    return -1;
  return see_event(fd);
}

/* ---- the list ------------------------------------------------------------------------------------------------------- */

static const struct channel {
  const char *name;
  void (*put)(int bit);
  int (*get)(void); /* 0, 1, -1: there is none */
} channels[] = {
    {"shared memory", put_shm, get_shm},
    {"message queue", put_msg, get_msg},
    {"semaphore", put_sem, get_sem},
    {"file in /tmp", put_file, get_file},
    {"file in /dev/shm", put_dev_shm, get_dev_shm},
    {"fifo", put_fifo, get_file},
    {"POSIX queue", put_mq, get_mq},
    {"mode of a file", put_mode, get_mode},
    {"time of change", put_mtime, get_mtime},
    {"time of reading", put_atime, get_atime},
    {"attribute of a file", put_attribute, get_attribute},
    {"whole-file lock", put_flock, get_flock},
    {"record lock", put_record, get_record},
    {"lock of an open file", put_ofd, get_ofd},
    {"lease", put_lease, get_lease},
    {"keyring", put_key, get_key},
    {"abstract socket", put_abstract, get_abstract},
    {"socket with a path", put_unix, get_unix},
    {"TCP port", put_tcp, get_tcp},
    {"UDP port", put_udp, get_udp},
    {"vsock", put_vsock, get_vsock},
    {"netlink group", put_netlink, get_netlink},
    {"another's memory", put_memory, get_memory},
    {"process name", put_name, get_name},
    {"another's descriptors", put_memfd, get_memfd},
    {"signal", put_signal, get_signal},
    {"priority", put_priority, get_priority},
    {"limits of a process", put_limit, get_limit},
    {"host name", put_host, get_host},
    {"free memory", put_load, get_load},
    {"futex on a file's page", put_futex, get_futex},
    {"cached page, mincore", put_cached, get_mincore},
    {"cached page, cachestat", put_cached, get_cachestat},
    {"cached page, nowait", put_cached, get_nowait},
    {"inotify", put_atime, get_inotify},
    {"fanotify", put_atime, get_fanotify},
};

int channel_count(void) {
  return (int)(sizeof channels / sizeof *channels);
}

const char *channel_name(int c) {
  return channels[c].name;
}

void channel_put(int c, int bit) {
  channels[c].put(bit);
}

int channel_get(int c) {
  return channels[c].get();
}

/* How far one gets in a while: what the other does with the processor shows in it. */
long channel_spin(int ms) {
  long n = 0;
  for (int64_t end = now_ms() + ms; now_ms() < end;)
    n++;
  return n;
}
