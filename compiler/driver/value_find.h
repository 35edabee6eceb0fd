/* value_find: finds where a stage's text defines a name. */
#ifndef DRIVER_VALUE_FIND_H
#define DRIVER_VALUE_FIND_H

#include <stdbool.h>
#include <stddef.h>

enum value_kind {
  VALUE_RESULT,   /* of the operation on the line */
  VALUE_ARGUMENT, /* of the first block of the operation on the line: of a function, of a loop */
  VALUE_ELEMENT,  /* inside of an operation's body, which is applied to elements */
};

struct value_place {
  int line;
  enum value_kind kind;
  int index;
};

/* Finds the definition of name ("%12", "%12#1"; the "%" may be missing) that is visible on line `line`, or on line 0 the
 * first one.  A name may be defined several times, in regions beside each other: the last one up to the line counts,
 * because a region's names continue those around it.  False: there is none. */
bool value_find(const char *text, size_t len, const char *name, int line, struct value_place *out);

/* Finds the name that is defined on the line as result 0; false if there is none.  *name is borrowed, n bytes. */
bool value_name_on(const char *text, size_t len, int line, const char **name, size_t *n);

/* True if the words of an instruction of NISA on this line give `name` to the operand of this name: "src<…>=… %name". */
bool value_is_operand(const char *text, size_t len, int line, const char *name, const char *operand);

#endif
