#include "neff/vendor_memory.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
  pid_t pid, parent, group;
  int64_t resident; /* pages */
  bool is_ours;
};

struct processes {
  struct process *v;
  int n, cap;
};

static bool read_process(const char *name, struct process *out) {
  char path[64], line[1024];
  long long resident;
  int parent, group;
  snprintf(path, sizeof path, "/proc/%.20s/stat", name);
  FILE *f = fopen(path, "re");
  const bool has_line = f && fgets(line, sizeof line, f);
  if (f)
    fclose(f);
  const char *p = has_line ? strrchr(line, ')') : NULL; /* the name before it may be anything */
  if (!p || sscanf(p, ") %*c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %lld",
                   &parent, &group, &resident) != 3)
    return false;
  *out = (struct process){(pid_t)atoi(name), parent, group, resident, false};
  return true;
}

static bool add(struct processes *all, const struct process *x) {
  if (all->n == all->cap) {
    const int cap = all->cap ? 2 * all->cap : 256;
    struct process *v = realloc(all->v, (size_t)cap * sizeof *v);
    if (!v)
      return false;
    all->v = v;
    all->cap = cap;
  }
  all->v[all->n++] = *x;
  return true;
}

static void read_all(struct processes *all) {
  DIR *d = opendir("/proc");
  struct process x;
  bool ok = d != NULL;
  for (const struct dirent *e; ok && (e = readdir(d));)
    if (*e->d_name >= '0' && *e->d_name <= '9' && read_process(e->d_name, &x))
      ok = add(all, &x);
  if (d)
    closedir(d);
}

static bool is_child(const struct processes *all, const struct process *x) {
  for (int k = 0; k < all->n; k++)
    if (all->v[k].is_ours && all->v[k].pid == x->parent)
      return true;
  return false;
}

/* A process is mostly listed after its parent, so that one round finds nearly all. */
static void mark(struct processes *all, pid_t root) {
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < all->n; i++) {
      struct process *x = &all->v[i];
      if (x->is_ours || (x->pid != root && x->group != root && !is_child(all, x)))
        continue;
      x->is_ours = more = true;
    }
  }
}

/* KiB, of which each process that shares a page has its part. */
static int64_t share_of(pid_t pid) {
  char path[64], line[256];
  long long kib = 0;
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "Pss: %lld", &kib) == 1)
      break;
  if (f)
    fclose(f);
  return kib;
}

bool vendor_memory_exceeds(pid_t root, int mib) {
  const int64_t page_kib = sysconf(_SC_PAGESIZE) / 1024, most_kib = (int64_t)mib << 10;
  struct processes all = {0};
  int64_t resident = 0, shares = 0;
  read_all(&all);
  mark(&all, root);
  for (int i = 0; i < all.n; i++)
    resident += all.v[i].is_ours ? all.v[i].resident * page_kib : 0;
  for (int i = 0; i < all.n && resident > most_kib && shares <= most_kib; i++)
    shares += all.v[i].is_ours ? share_of(all.v[i].pid) : 0;
  free(all.v);
  return shares > most_kib;
}
