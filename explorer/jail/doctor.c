/* doctor: prints which layers of the jail this machine supports, found out by building a jail. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jail/confine.h"
#include "jail/jail.h"

enum { EXIT_NO_JAIL = 1 };

static const char *const advice[LAYER_COUNT] = {
    [LAYER_USER] = "allow unprivileged user namespaces, or run as root with CAP_SYS_ADMIN",
    [LAYER_MOUNT] = "the kernel must be 5.12 or newer and allow mounts in a user namespace",
    [LAYER_IDS] = "uid 65534 must exist in the outer user namespace; without namespaces, run as root",
    [LAYER_LANDLOCK] = "boot with landlock in the list of security modules",
    [LAYER_SECCOMP] = "the kernel must have seccomp filters",
    [LAYER_CGROUP_NS] = "the kernel must have cgroup namespaces",
    [LAYER_NO_USERNS] = "not needed: the system call filter refuses nested namespaces too",
};

static const char *const levels[] = {
    [JAIL_NONE] = "Below level C: `nkx serve` compiles no kernels here unless it gets --jail-min none.",
    [JAIL_C] = "Level C: no namespaces; jobs have another user id, Landlock, a system call filter and limits.",
    [JAIL_B] = "Level B: namespaces, Landlock, a filter and limits; the server watches how much memory a job uses.",
    [JAIL_A] = "Level A: namespaces, Landlock, a filter, limits, and a control group for each job.",
};

static void print_layers(const struct jail *j, const struct jail_report *r) {
  uint32_t needed = jail_layers_needed(JAIL_B);
  for (int l = 0; l < LAYER_COUNT; l++) {
    bool on = r->layers >> l & 1;
    const char *hint = l == LAYER_CGROUP ? j->cgroup.why : advice[l];
    printf("%-18s %s", jail_layer_name((enum jail_layer)l), on ? "yes" : needed >> l & 1 ? "NO" : "no");
    if (l == r->failed)
      printf(" (%s)", strerror(r->error));
    if (!on && hint && *hint)
      printf(": %s", hint);
    printf("\n");
  }
  printf("landlock ABI       %d\n", j->landlock_abi);
}

/* Prints what to change on this machine for a higher level. */
static void print_advice(const struct jail *j) {
  if (j->level < JAIL_B) {
    printf("For level B: %s.\n", j->why);
    if (geteuid())
      puts("  Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0), or run"
           " as root.");
    puts("  In a container: --security-opt seccomp=unconfined --cap-add SYS_ADMIN, or a profile that allows clone with"
         " new\n  namespaces, mount and pivot_root.");
  }
  if (j->level < JAIL_A) {
    printf("For level A: %s.\n", j->cgroup.why[0] ? j->cgroup.why : "level B first");
    puts(
        "  The kernel's control groups must be version 2 only (systemd.unified_cgroup_hierarchy=1), and the service"
        " needs one\n  of its own with memory, pids and cpu: with systemd, Delegate=yes in its unit; in a container,"
        " --cgroupns=private and\n  a writable /sys/fs/cgroup; otherwise a directory owned by the service's user, given"
        " as `nkx serve --cgroup DIR`.");
  }
}

static void print_server(void) {
  struct confinement c;
  struct error err;
  puts("\nThe server, which runs no kernels, drops or restricts:");
  if (confine_probe(&c, &err)) {
    printf("  %s\n", err.text);
    return;
  }
  for (int l = 0; l < CONFINE_COUNT; l++)
    printf("%-18s %s\n", confine_layer_name((enum confine_layer)l), c.layers >> l & 1 ? "yes" : "no");
  if (c.why[0])
    printf("missing: %s\n", c.why);
}

int jail_doctor(void) {
  struct jail j = {.limits = {JAIL_CPU_S, JAIL_MEMORY_MIB, JAIL_RESIDENT_MIB}, .min_level = JAIL_NONE};
  struct jail_report r = {.failed = -1};
  struct cgroup_tree found;
  struct error err;

  enum status st = jail_add_path(&j, "/usr/lib", false, &err);
  if (!st)
    st = jail_add_path(&j, "/dev/null", true, &err);
  if (!st)
    st = jail_prepare(&j, "/dev/null", &err); /* no control group: doctor must not move processes */
  if (!st)
    st = jail_probe(&j, &r, &err);
  if (st) {
    printf("jail: %s\n%s\n", err.text, advice[LAYER_USER]);
    jail_clear(&j);
    return EXIT_NO_JAIL;
  }
  cgroup_look(NULL, &found);
  memcpy(j.cgroup.why, found.why, sizeof found.why);
  if (j.level == JAIL_B && !found.why[0]) {
    j.level = JAIL_A;
    r.layers |= 1u << LAYER_CGROUP;
  }
  print_layers(&j, &r);
  puts(levels[j.level]);
  print_advice(&j);
  print_server();
  bool is_enough = j.level >= JAIL_C;
  puts(is_enough ? "Kernels can be compiled here." : "Kernels cannot be compiled here: a needed layer is missing.");
  jail_clear(&j);
  return is_enough ? 0 : EXIT_NO_JAIL;
}
