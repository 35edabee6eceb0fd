#include "job/export.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <zlib.h>

#include "driver/comparison.h"
#include "driver/frames.h"

enum { NAME_LEN = 160, TAR_BLOCK = 512, TAR_NAME_MAX = 99, GZIP_WINDOW = 15 + 16, PIECE = 64 << 10 };

static json_t *result_of(struct work *w) {
  size_t len;
  char *text = work_result(w, &len);
  json_t *r = text ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : NULL;
  free(text);
  return r;
}

bool export_result(struct work *w, struct buf *out) {
  size_t len;
  char *text = work_result(w, &len);
  bool ok = text && !buf_append(out, text, len);
  free(text);
  return ok;
}

static bool is_simulated(const json_t *kernel) {
  return json_object_get(kernel, "simulation") || json_object_get(kernel, "profile");
}

bool export_comparison(struct work *a, struct work *b, struct buf *out) {
  json_t *x = result_of(a), *y = result_of(b);
  const json_t *in_x = json_object_get(x, "kernels"), *in_y = json_object_get(y, "kernels");
  bool has_any = false;
  buf_puts(out, "{\"kernels\":[");
  for (size_t i = 0; i < json_array_size(in_x) && i < json_array_size(in_y); i++) {
    const json_t *p = json_array_get(in_x, i), *q = json_array_get(in_y, i);
    if (!is_simulated(p) || !is_simulated(q))
      continue;
    if (has_any)
      buf_putc(out, ',');
    comparison_put(out, p, q);
    has_any = true;
  }
  buf_puts(out, "]}");
  json_decref(x);
  json_decref(y);
  return has_any && !buf_status(out);
}

static bool append_json(struct buf *out, const json_t *v) {
  char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
  bool ok = text && !buf_puts(out, text);
  free(text);
  return ok;
}

bool export_stage_text(struct work *w, const struct gather_stage *which, struct buf *out) {
  struct buf stage;
  struct frame f = {.n = 0};
  buf_init(&stage, FRAME_MAX);
  const struct frame_member *m = NULL;
  if (work_stage(w, which, &stage) && !frame_scan_object(buf_text(&stage), stage.len, &f, NULL))
    m = frame_get(&f, "text");
  json_t *text = m ? json_loadb(m->value, m->value_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
  bool ok = json_is_string(text) && !buf_append(out, json_string_value(text), json_string_length(text));
  json_decref(text);
  buf_clear(&stage);
  return ok;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* One file of a result: its bytes are `text`, or those that `base64` encodes, or they are made from `map`. */
struct file {
  char name[NAME_LEN];
  const char *type;
  const json_t *text, *base64;
  const json_t *map; /* the result */
};

typedef bool (*file_fn)(void *user, const struct file *f); /* false: no more */

static const char map_name[] = "source-map.json";

static bool is_plain(const char *s) {
  static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  return *s && *s != '/' && *s != '.' && !s[strspn(s, ok)] && !strstr(s, "..") && !strstr(s, "//");
}

/* "kernel/04-hlo-to-linalg.mlir".  Names come from a worker; one that is not a plain file name is replaced. */
static void name_stage(struct file *f, int kernel, const json_t *k, int index, const json_t *s) {
  const char *kn = json_string_value(json_object_get(k, "name")), *sn = json_string_value(json_object_get(s, "name"));
  const char *dialect = json_string_value(json_object_get(s, "dialect"));
  bool is_hlo = dialect && !strcmp(dialect, "hlo");
  char number[24];
  snprintf(number, sizeof number, "kernel%d", kernel);
  if (!kn || !is_plain(kn) || strchr(kn, '/') || strlen(kn) > 60)
    kn = number;
  if (!sn || !is_plain(sn) || strchr(sn, '/') || strlen(sn) > 60)
    sn = "stage";
  snprintf(f->name, sizeof f->name, "%s/%02d-%s.%s", kn, index, sn, is_hlo ? "txt" : "mlir");
  f->type = "text/plain; charset=utf-8";
  f->text = json_object_get(s, "text");
}

static bool each_stage(const json_t *kernels, file_fn fn, void *user) {
  size_t i, n;
  json_t *k, *s;
  json_array_foreach((json_t *)kernels, i, k) {
    json_array_foreach(json_object_get(k, "stages"), n, s) {
      struct file f = {0};
      name_stage(&f, (int)i, k, (int)n, s);
      if (json_is_string(f.text) && !fn(user, &f))
        return false;
    }
  }
  return true;
}

/* An artifact's name comes from a worker, too; it cannot take the place of the file that is made here. */
static bool is_artifact_name(const char *name) {
  return name && is_plain(name) && strlen(name) <= TAR_NAME_MAX && strcmp(name, map_name) != 0;
}

static const char *known_type(const char *type) {
  static const char *const types[] = {"application/json", "application/x-protobuf"};
  for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
    if (!strcmp(type, types[i]))
      return types[i];
  return type && !strncmp(type, "text/", 5) ? "text/plain; charset=utf-8" : "application/octet-stream";
}

static bool each_artifact(const json_t *result, file_fn fn, void *user) {
  size_t i;
  json_t *a;
  json_array_foreach(json_object_get(result, "artifacts"), i, a) {
    const char *name = json_string_value(json_object_get(a, "name"));
    struct file f = {.base64 = json_object_get(a, "data")};
    if (!is_artifact_name(name) || !json_is_string(f.base64))
      continue;
    snprintf(f.name, sizeof f.name, "%s", name);
    f.type = known_type(json_string_value(json_object_get(a, "media_type")));
    if (!fn(user, &f))
      return false;
  }
  return true;
}

static void each_file(const json_t *result, file_fn fn, void *user) {
  struct file map = {.type = "application/json", .map = result};
  snprintf(map.name, sizeof map.name, "%s", map_name);
  if (fn(user, &map) && each_stage(json_object_get(result, "kernels"), fn, user))
    each_artifact(result, fn, user);
}

/* ---- their bytes ------------------------------------------------------------------------------------------------- */

static bool append_base64(struct buf *out, const json_t *v) {
  size_t n = json_string_length(v);
  const char *text = json_string_value(v);
  if (n % 4 || n > 1 << 30 || buf_reserve(out, n / 4 * 3 + 1))
    return false;
  int len = EVP_DecodeBlock((unsigned char *)out->data + out->len, (const unsigned char *)text, (int)n);
  if (len < 0)
    return false;
  len -= n && text[n - 1] == '=';
  len -= n > 1 && text[n - 2] == '=';
  out->len += (size_t)len;
  out->data[out->len] = 0;
  return true;
}

static json_t *map_of_stage(const json_t *s) {
  static const char *const keys[] = {"index", "name", "lines", "from"};
  json_t *o = json_object();
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    json_t *v = json_object_get(s, keys[i]);
    if (v)
      json_object_set(o, keys[i], v);
  }
  return o;
}

static bool append_map(struct buf *out, const json_t *result) {
  static const char *const keys[] = {"files", "places", "sources"};
  const json_t *kernels = json_object_get(result, "kernels");
  json_t *root = json_object(), *list = json_array(), *k, *s;
  size_t i, n;
  json_array_foreach((json_t *)kernels, i, k) {
    json_t *o = json_object(), *stages = json_array(), *name = json_object_get(k, "name");
    if (name)
      json_object_set(o, "name", name);
    json_array_foreach(json_object_get(k, "stages"), n, s) {
      json_array_append_new(stages, map_of_stage(s));
    }
    json_object_set_new(o, "stages", stages);
    json_array_append_new(list, o);
  }
  for (i = 0; i < sizeof keys / sizeof *keys; i++)
    json_object_set(root, keys[i], json_object_get(result, keys[i]));
  json_object_set_new(root, "kernels", list);
  bool ok = append_json(out, root);
  json_decref(root);
  return ok;
}

static bool append_file(struct buf *out, const struct file *f) {
  if (f->map)
    return append_map(out, f->map);
  if (f->base64)
    return append_base64(out, f->base64);
  return !buf_append(out, json_string_value(f->text), json_string_length(f->text));
}

struct wanted {
  const char *name;
  struct buf *out;
  const char **type;
  bool ok;
};

static bool take_wanted(void *user, const struct file *f) {
  struct wanted *w = user;
  if (strcmp(f->name, w->name) != 0)
    return true;
  w->ok = append_file(w->out, f);
  *w->type = f->type;
  return false;
}

/* The file of an artifact's frame, if it is the wanted one. */
static bool see_frame(void *user, const char *json, size_t len) {
  struct wanted *w = user;
  struct frame scanned;
  if (frame_scan(json, len, &scanned, NULL))
    return true;
  const struct frame_member *about = frame_get(&scanned, "artifact"), *data = frame_get(&scanned, "data");
  json_t *a = about ? json_loadb(about->value, about->value_len, 0, NULL) : NULL;
  const char *name = json_string_value(json_object_get(a, "name"));
  const bool is_it = is_artifact_name(name) && data && !strcmp(name, w->name);
  json_t *text = is_it ? json_loadb(data->value, data->value_len, JSON_DECODE_ANY, NULL) : NULL;
  if (json_is_string(text)) {
    w->ok = append_base64(w->out, text);
    *w->type = known_type(json_string_value(json_object_get(a, "media_type")));
  }
  json_decref(text);
  json_decref(a);
  return !is_it;
}

/* An artifact is found in its frame: the whole result, which may have many MiB, is read as JSON only for other files. */
bool export_file(struct work *w, const char *name, struct buf *out, const char **type) {
  struct wanted wanted = {.name = name, .out = out, .type = type};
  const bool has_all = work_each_artifact(w, see_frame, &wanted);
  if (wanted.ok)
    return true;
  json_t *r = has_all ? result_of(w) : NULL;
  if (r)
    each_file(r, take_wanted, &wanted);
  json_decref(r);
  return wanted.ok;
}

/* ---- tar --------------------------------------------------------------------------------------------------------- */

struct tar {
  z_stream z;
  struct buf *out;
  struct buf piece; /* one file's bytes */
  bool ok;
};

static bool deflate_bytes(struct tar *t, const void *p, size_t n, int flush) {
  int rc = Z_OK;
  t->z.next_in = (Bytef *)p;
  t->z.avail_in = (uInt)n;
  do {
    if (buf_reserve(t->out, PIECE))
      return false;
    t->z.next_out = (Bytef *)t->out->data + t->out->len;
    t->z.avail_out = PIECE;
    rc = deflate(&t->z, flush);
    t->out->len += PIECE - t->z.avail_out;
  } while (rc == Z_OK && (t->z.avail_in || (flush == Z_FINISH)));
  return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
}

/* A member in POSIX ustar form; everything that could differ from run to run, such as times, is 0. */
static bool add_member(struct tar *t, const char *name, const struct buf *bytes) {
  assert(strlen(name) <= TAR_NAME_MAX);
  char h[TAR_BLOCK] = {0}, zeros[TAR_BLOCK] = {0};
  unsigned sum = 0;
  snprintf(h, TAR_NAME_MAX + 1, "%s", name);
  memcpy(h + 100,
         "0000644\0"
         "0000000\0"
         "0000000",
         24);
  snprintf(h + 124, 12, "%011zo", bytes->len);
  snprintf(h + 136, 12, "%011o", 0);
  memset(h + 148, ' ', 8);
  h[156] = '0';
  memcpy(h + 257,
         "ustar\0"
         "00",
         8);
  for (int i = 0; i < TAR_BLOCK; i++)
    sum += (unsigned char)h[i];
  snprintf(h + 148, 8, "%06o", sum);
  return deflate_bytes(t, h, sizeof h, Z_NO_FLUSH) && deflate_bytes(t, buf_text(bytes), bytes->len, Z_NO_FLUSH) &&
         deflate_bytes(t, zeros, (TAR_BLOCK - bytes->len % TAR_BLOCK) % TAR_BLOCK, Z_NO_FLUSH);
}

static bool add_file(void *user, const struct file *f) {
  struct tar *t = user;
  if (strlen(f->name) > TAR_NAME_MAX)
    return true;
  t->piece.len = 0;
  t->ok = append_file(&t->piece, f) && add_member(t, f->name, &t->piece);
  return t->ok;
}

bool export_all(struct work *w, struct buf *out) {
  static const char end[2 * TAR_BLOCK];
  struct tar t = {.out = out};
  if (deflateInit2(&t.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return false;
  buf_init(&t.piece, out->max);
  json_t *r = result_of(w);
  t.ok = r && export_result(w, &t.piece) && add_member(&t, "result.json", &t.piece);
  if (t.ok)
    each_file(r, add_file, &t);
  t.ok = t.ok && deflate_bytes(&t, end, sizeof end, Z_FINISH);
  deflateEnd(&t.z);
  buf_clear(&t.piece);
  json_decref(r);
  return t.ok;
}
