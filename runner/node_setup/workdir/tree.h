/* tree: lists the contents of a folder, so that another machine can have the same folder.
 *
 * Document   {"tree": 1, "entries": [["file", "a/b.py", 420, 1034, 1764172800000000000, "XXH3"], ...]}: of a file its
 *            permissions, bytes, time of change in nanoseconds, digest and, if it has holes, the bytes that it
 *            takes on the disk; ["link", PATH, TARGET] of a symbolic link; ["folder", PATH, PERMISSIONS] of a folder,
 *            before its contents
 * Paths      relative, in UTF-8, without "." and ".."; entries are sorted by dt_tree_order (dt_tree_read refuses others)
 * Digest     of everything but the times: equal digests are equal contents
 * Ownership  everything lives in the arena
 */
#ifndef DT_NODE_SETUP_WORKDIR_TREE_H
#define DT_NODE_SETUP_WORKDIR_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"

#define DT_TREE_ENTRIES_MAX 200000
#define DT_TREE_BYTES_MAX   ((size_t)256 << 20) /* of a document */

typedef enum dt_tree_kind { DT_TREE_FILE, DT_TREE_LINK, DT_TREE_FOLDER } dt_tree_kind;

typedef struct dt_tree_entry {
    dt_tree_kind kind;
    const char *path;
    const char *target; /* of a link; else NULL */
    int64_t mode;       /* permissions */
    int64_t bytes, time_ns;
    int64_t disk_bytes; /* without holes; at most `bytes` */
    char digest[DT_DIGEST_SIZE];
    uint64_t inode, device; /* of a file of this machine; not in the document */
    int64_t changed_ns;     /* the same */
} dt_tree_entry;

typedef struct dt_tree {
    dt_tree_entry *entries; /* [count] */
    int64_t count, files, bytes;
} dt_tree;

/* hex: DT_DIGEST_SIZE bytes. */
void dt_tree_digest(char *hex, const dt_tree *tree);
void dt_tree_print(dt_strbuf *out, const dt_tree *tree); /* appends the document */
json_t *dt_tree_to_json(const dt_tree *tree);            /* new reference */
/* Both check everything: the document can come from another machine. DT_ERR_CORRUPT. text: ends with a NUL. */
dt_status dt_tree_read_text(dt_tree *out, const char *text, size_t length, dt_arena *arena,
                            dt_error *err);
dt_status dt_tree_from_json(dt_tree *out, const json_t *json, dt_arena *arena, dt_error *err);
dt_status dt_tree_write(const dt_tree *tree, const char *path, dt_error *err);
/* DT_ERR_NOT_FOUND: the file does not exist. */
dt_status dt_tree_read(dt_tree *out, const char *path, dt_arena *arena, dt_error *err);

/* Returns true for a relative path that stays below its folder. */
bool dt_tree_path_is_good(const char *path);
/* Returns true if both are the same entry with the same contents, whatever their times. */
bool dt_tree_entry_same(const dt_tree_entry *a, const dt_tree_entry *b);
/* Compares paths as strcmp does, but with '/' before all other bytes: a folder is directly followed by its contents. */
int dt_tree_order(const char *a, const char *b);
/* Returns the entry with this path, or NULL. */
const dt_tree_entry *dt_tree_find(const dt_tree *tree, const char *path);

#endif
