/* journal: the agent's append-only record of events, numbered from 0.
 *
 * Invariants
 *   1 An event is in the file before any byte of it is sent; what is sent is read from the file.
 *   2 The numbers of the lines in the file are 0, 1, 2, ... without a gap, but for the one that
 * trim makes of what was acknowledged. 3 A line that was begun is finished before the next one
 * begins, through full disks too.
 *
 * Durability  a batch is one write(), which survives the death of the process; events that a run
 *             cannot do without (checkpoint, exited, finished, failed, released) are synced to
 *             the disk before they are sent
 * Full disk   lines wait in memory and are written when there is room; of rank output
 *             (`log`) what does not fit into 1 MiB of it is dropped, counted, and said
 * Threads     the loop's
 */
#ifndef DT_AGENT_JOURNAL_H
#define DT_AGENT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/strbuf.h"

typedef struct dt_journal {
    int fd;
    int64_t next_sequence;
    int64_t whole_bytes;   /* of the file, up to the end of its last whole line: may be read */
    int64_t written_bytes; /* of the file */
    dt_strbuf pending;     /* lines, the first perhaps written in part, not in the file yet */
    bool sync_wanted;
    int64_t dropped_lines;
    int note_fd;           /* says what was given back (trim.c) */
    int64_t head_bytes;    /* the beginning, which a restarted agent needs; 0: not known yet */
    int64_t kept_bytes;    /* between the head and here nothing is to be read; 0: all is */
    int64_t kept_sequence; /* the number of the line at kept_bytes */
    int64_t *marks;        /* offset of every DT_JOURNAL_MARK_EVERYth line */
    size_t mark_count, mark_capacity;
} dt_journal;

#define DT_JOURNAL_MARK_EVERY 1024

/* Each line of an existing journal, in order; the object is borrowed. */
typedef void dt_journal_fn(void *context, const json_t *event);

/* Opens or makes the file; what a crash left of a last line is cut off. */
dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err);
void dt_journal_close(dt_journal *journal); /* accepts one of zero bytes whose descriptors are -1 */

/* Takes `event` (its reference) and gives it its number and time. */
void dt_journal_add(dt_journal *journal, json_t *event);

/* Writes what is pending. DT_ERR_IO: it stays pending. */
dt_status dt_journal_flush(dt_journal *journal, dt_error *err);

/* Where the line numbered `sequence` begins; one past the last is good, beyond that
 * DT_ERR_NOT_FOUND. */
dt_status dt_journal_offset(const dt_journal *journal, int64_t sequence, int64_t *offset,
                            dt_error *err);

/* --- trim.c */
dt_status dt_journal_note_open(dt_journal *journal, const char *path, dt_error *err);
void dt_journal_keep_head(dt_journal *journal); /* what was added so far stays */

/* Gives what lies before event `sequence`, and below most_bytes, back to the disk, where that is
 * worth it and the head is known. An error leaves the journal good: it only grows. */
dt_status dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes, dt_error *err);

/* Whole lines from `offset` into `out` (reset first), about `want` bytes or one line; empty at
 * the end. */
dt_status dt_journal_read(const dt_journal *journal, int64_t offset, size_t want, dt_strbuf *out,
                          dt_error *err);

#endif
