#include "neff/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "base/utf8.h"

enum { NAME_MAX_BYTES = 512, FILE_MODE = 0644 };

/* Takes a third of the default level's time, for a fifth more bytes. */
#define GZIP_LEVEL "3"

bool neff_name_is_valid(const char *name) {
  const size_t n = strlen(name);
  if (!n || n > NAME_MAX_BYTES || !utf8_is_valid(name, n))
    return false;
  for (const char *part = name;;) {
    const size_t len = strcspn(part, "/");
    if (!len || (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
      return false;
    for (size_t i = 0; i < len; i++)
      if ((unsigned char)part[i] < ' ' || part[i] == 0x7f || part[i] == '\\')
        return false;
    if (!part[len])
      return true;
    part += len + 1;
  }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reading {
  struct arena *arena;
  struct archive *archive;
  struct neff_limits limits;
  struct neff *neff;
  struct index names;
  size_t total;
  struct error *err;
};

static enum status damaged(struct reading *r) {
  const char *why = archive_error_string(r->archive);
  return fail(r->err, ST_INPUT, "the archive of the NEFF is damaged: %.120s", why ? why : "it cannot be read");
}

static enum status too_large(struct reading *r) {
  return fail(r->err, ST_LIMIT, "the NEFF unpacks to more than %zu bytes", r->limits.total_bytes);
}

/* "./sg00/def.json", as some packers write it, is sg00/def.json. */
static const char *plain_name(const char *name) {
  while (name[0] == '.' && name[1] == '/')
    name += 2 + strspn(name + 2, "/");
  return name;
}

static enum status add_name(struct reading *r, const char *name) {
  const uint32_t h = hash_text(name);
  for (struct index_probe p = index_probe(&r->names, h); index_next(&p);)
    if (!strcmp(r->neff->members.v[p.entry].name, name))
      return fail(r->err, ST_INPUT, "the archive has two members of the name %.100s", name);
  index_add(&r->names, h, r->neff->members.n);
  return ST_OK;
}

/* The size in an entry is its author's word: what is read counts, and the memory grows with it. */
static enum status read_data(struct reading *r, struct neff_member *m) {
  struct buf b;
  enum status st = ST_OK;
  const void *block;
  size_t n;
  la_int64_t at;
  int got;

  buf_init(&b, r->limits.total_bytes - r->total);
  while (!st && (got = archive_read_data_block(r->archive, &block, &n, &at)) == ARCHIVE_OK) {
    if (at < 0 || (size_t)at < b.len)
      st = fail(r->err, ST_INPUT, "the parts of %.100s overlap", m->name);
    else if ((size_t)at > b.max || n > b.max - (size_t)at)
      st = too_large(r);
    else {
      const size_t hole = (size_t)at - b.len; /* of a sparse file */
      st = buf_reserve(&b, hole + n);
      if (!st) {
        memset(b.data + b.len, 0, hole);
        b.len += hole;
        st = buf_append(&b, block, n);
      }
      if (st)
        fail(r->err, st, "no memory for %.100s", m->name);
    }
  }
  if (!st && got != ARCHIVE_EOF)
    st = damaged(r);
  if (!st) {
    char *data = arena_alloc(r->arena, b.len + 1);
    memcpy(data, buf_text(&b), b.len);
    m->data = data;
    m->size = b.len;
    r->total += b.len;
  }
  buf_clear(&b);
  return st;
}

static enum status read_entry(struct reading *r, struct archive_entry *e) {
  const char *path = archive_entry_pathname(e);
  const char *name = path ? plain_name(path) : "";

  if (archive_entry_filetype(e) == AE_IFDIR)
    return ST_OK;
  if (!neff_name_is_valid(name))
    return fail(r->err, ST_INPUT, "the archive has a member whose name cannot be a file's: %.100s", name);
  if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
    return fail(r->err, ST_INPUT, "the archive has a member that is no regular file: %.100s", name);
  if (r->neff->members.n == r->limits.members)
    return fail(r->err, ST_LIMIT, "the NEFF has more than %d members", r->limits.members);
  struct neff_member m = {.name = arena_strdup(r->arena, name)};
  enum status st = add_name(r, m.name);
  if (!st)
    st = read_data(r, &m);
  if (!st)
    array_push(r->arena, &r->neff->members, m);
  return st;
}

enum status neff_archive_read(struct arena *a, const void *bytes, size_t n, struct neff_limits limits, struct neff *x,
                              struct error *err) {
  struct reading r = {.arena = a, .limits = limits, .neff = x, .names = {.arena = a}, .err = err};
  struct archive_entry *e;
  enum status st = ST_OK;
  int got = ARCHIVE_OK;

  r.archive = archive_read_new();
  if (!r.archive)
    return fail(err, ST_NOMEM, "no memory for reading an archive");
  if (archive_read_support_format_tar(r.archive) || archive_read_support_filter_gzip(r.archive) ||
      archive_read_open_memory(r.archive, bytes, n))
    st = damaged(&r);
  while (!st && (got = archive_read_next_header(r.archive, &e)) == ARCHIVE_OK)
    st = read_entry(&r, e);
  if (!st && got != ARCHIVE_EOF)
    st = damaged(&r);
  archive_read_free(r.archive);
  return st;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static la_ssize_t append(struct archive *archive, void *user, const void *bytes, size_t n) {
  struct buf *b = user;
  if (!buf_append(b, bytes, n))
    return (la_ssize_t)n;
  archive_set_error(archive, EFBIG, "the file is too large");
  return -1;
}

static int put_member(struct archive *w, struct archive_entry *e, const struct neff_member *m) {
  archive_entry_clear(e);
  archive_entry_set_pathname_utf8(e, m->name);
  archive_entry_set_filetype(e, AE_IFREG);
  archive_entry_set_perm(e, FILE_MODE);
  archive_entry_set_size(e, (la_int64_t)m->size);
  archive_entry_set_mtime(e, 0, 0);
  const int st = archive_write_header(w, e);
  if (st != ARCHIVE_OK || !m->size)
    return st;
  return archive_write_data(w, m->data, m->size) == (la_ssize_t)m->size ? ARCHIVE_OK : ARCHIVE_FATAL;
}

enum status neff_archive_write(const struct neff *x, struct buf *b, struct error *err) {
  struct archive *w = archive_write_new();
  struct archive_entry *e = archive_entry_new();
  enum status st = ST_OK;
  int did = w && e ? ARCHIVE_OK : ARCHIVE_FATAL;

  for (int i = 0; i < x->members.n; i++)
    if (!neff_name_is_valid(x->members.v[i].name)) {
      st = fail(err, ST_INPUT, "a member of a NEFF cannot be called %.100s", x->members.v[i].name);
      goto out;
    }
  if (did == ARCHIVE_OK)
    did = archive_write_set_format_pax_restricted(w);
  if (did == ARCHIVE_OK && x->is_compressed)
    did = archive_write_add_filter_gzip(w);
  if (did == ARCHIVE_OK && x->is_compressed) /* the time of writing would make each file different */
    did = archive_write_set_filter_option(w, "gzip", "timestamp", NULL);
  if (did == ARCHIVE_OK && x->is_compressed)
    did = archive_write_set_filter_option(w, "gzip", "compression-level", GZIP_LEVEL);
  if (did == ARCHIVE_OK)
    did = archive_write_set_bytes_in_last_block(w, 1);
  if (did == ARCHIVE_OK)
    did = archive_write_open(w, b, NULL, append, NULL);
  for (int i = 0; i < x->members.n && did == ARCHIVE_OK; i++)
    did = put_member(w, e, &x->members.v[i]);
  if (did == ARCHIVE_OK)
    did = archive_write_close(w);
  if (did != ARCHIVE_OK)
    st = buf_status(b) ? fail(err, buf_status(b), "the NEFF is larger than %zu bytes", b->max)
                       : fail(err, w ? ST_BUG : ST_NOMEM, "libarchive: %s", w ? archive_error_string(w) : "no memory");
out:
  archive_entry_free(e);
  archive_write_free(w);
  return st;
}
