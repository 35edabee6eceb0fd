/* json: writing JSON into a buffer.
 *
 * Frames are flat and written on the hot path, so they are printed directly.  JSON is read with jansson, which recurses: what
 * comes from outside is measured with json_nesting first.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* A quoted string: escapes what JSON demands; bytes that are not UTF-8 become U+FFFD.  The result also holds no raw
 * newline, so a frame stays on one line. */
void json_put_string(struct buf *b, const char *s, size_t len);
void json_put_cstr(struct buf *b, const char *s);
/* "key": with a comma before it unless the last byte in b is '{' or '['. */
void json_put_key(struct buf *b, const char *key);
void json_put_comma(struct buf *b); /* unless the last byte in b is '{' or '[' */
void json_put_int(struct buf *b, long long v);
void json_put_field_int(struct buf *b, const char *key, long long v);
void json_put_field_str(struct buf *b, const char *key, const char *s);
/* A list of n integers. */
void json_put_field_ints(struct buf *b, const char *key, int n, const int64_t *v);
void json_put_field_bool(struct buf *b, const char *key, int v);
/* A number with enough digits to read back the same; null for NaN and infinities, which JSON lacks. */
void json_put_field_double(struct buf *b, const char *key, double v);

/* The deepest nesting of brackets outside of strings in a text of n bytes, which need not be JSON. */
int json_nesting(const char *s, size_t n);

#endif
