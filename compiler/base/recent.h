/* recent: objects in the order of their last use, as a list of links that the objects hold. */
#ifndef BASE_RECENT_H
#define BASE_RECENT_H

#include <assert.h>
#include <stddef.h>

struct recent_link {
  struct recent_link *newer, *older;
};

struct recent_list {
  struct recent_link *newest, *oldest;
};

/* Adds l, which is not in the list, as the one used last. */
static inline void recent_add(struct recent_list *list, struct recent_link *l) {
  *l = (struct recent_link){.older = list->newest};
  *(list->newest ? &list->newest->newer : &list->oldest) = l;
  list->newest = l;
}

/* l is in the list. */
static inline void recent_remove(struct recent_list *list, struct recent_link *l) {
  assert(l->newer ? l->newer->older == l : list->newest == l);
  assert(l->older ? l->older->newer == l : list->oldest == l);
  *(l->newer ? &l->newer->older : &list->newest) = l->older;
  *(l->older ? &l->older->newer : &list->oldest) = l->newer;
  *l = (struct recent_link){0};
}

#endif
