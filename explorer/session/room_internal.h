/* What the parts of a room share. */
#ifndef SESSION_ROOM_INTERNAL_H
#define SESSION_ROOM_INTERNAL_H

#include "session/room.h"

/* The person of this number; NULL: there is none.  Locked. */
struct person *room_person(struct room *r, int number);

#endif
