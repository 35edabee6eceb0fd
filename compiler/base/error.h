/* error: how a function reports that it failed.
 *
 * A function that can fail returns enum status and fills struct error once, where it happened; callers
 * pass both up unchanged.  Errors in the user's kernel are reported as a struct diag (diag.h), which has a stable code and
 * a Python range; ST_INPUT then only says that there are diagnostics.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

enum status {
  ST_OK,
  ST_INPUT, /* the user's input is wrong; text is for the user */
  ST_LIMIT, /* a stated limit was reached; text is for the user */
  ST_TIMEOUT,
  ST_DENIED,
  ST_BUSY,
  ST_QUOTA,  /* this client has used up its share; others have not */
  ST_ABSENT, /* what the user named is not installed here; text is for the user */
  ST_NOMEM,
  ST_IO,
  ST_FULL, /* no space to write to */
  ST_BUG,  /* an assumption of the program does not hold; text is for the log only */
};

struct error {
  enum status code;
  char text[240]; /* for the user when code is ST_INPUT, ST_LIMIT or ST_ABSENT; for the log otherwise */
};

/* Fills err (which may be NULL) and returns code, so that a caller can write `return fail(...)`.
 * %m is errno's text. */
enum status fail(struct error *err, enum status code, const char *fmt, ...) PRINTF(3, 4);

const char *status_name(enum status st);

#endif
