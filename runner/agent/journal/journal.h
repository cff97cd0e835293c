/* journal: the agent's append-only record of events, numbered.
 *
 * Invariants
 *   1 An event is in the file before any byte of it is sent; what is sent is read from the file.
 *   2 The numbers of the lines in the file rise, and none is given twice, whatever happened to the
 *     file: an agent that opens a journal of another continues at the next multiple of
 *     DT_JOURNAL_JUMP, beyond all that the one before can have given. The first line after such a
 *     jump says `after`, the number of the last line that there is before it. Any other jump is a
 *     loss: lines that were damaged, or that trim gave back because they were acknowledged.
 *   3 A line that was begun is finished before the next one begins, through full disks too.
 *   4 A line ends with `sum`, a checksum of what is before it; one that is damaged is never given
 * to anybody. It is set aside (PATH.damaged) and counted, and the journal continues after it.
 *
 *   5 The first line that an agent writes states `journal`, the version of its lines. A journal of another
 *     version is not served, and nothing is added to it.
 *
 * Durability  a batch is one write(), which survives the death of the process; events that a run
 *             cannot do without (checkpoint, exited, finished, failed, released) are synced to
 *             the disk before they are sent
 * Full disk   lines wait in memory and are written when there is room; of rank output
 *             (`log`) what does not fit into 1 MiB of it is dropped, counted, and said
 * Threads     the loop's
 */
#ifndef DT_RUNNER_AGENT_JOURNAL_JOURNAL_H
#define DT_RUNNER_AGENT_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/strbuf.h"

typedef struct dt_journal_mark {
    int64_t sequence, offset;
} dt_journal_mark;

typedef struct dt_journal {
    int fd;
    int64_t next_sequence;
    int64_t whole_bytes;   /* of the file, up to the end of its last whole line: may be read */
    int64_t written_bytes; /* of the file */
    dt_strbuf pending;     /* lines, the first perhaps written in part, not in the file yet */
    bool sync_wanted;
    bool opened_again;     /* the next line is the first one after a jump */
    bool version_said;     /* by a line of ours */
    int64_t damaged_lines; /* that were met since it was opened */
    char *path;
    int64_t dropped_lines;
    int note_fd;            /* says what was given back (trim.c) */
    int64_t head_bytes;     /* the beginning, which a restarted agent needs; 0: not known yet */
    int64_t kept_bytes;     /* between the head and here nothing is to be read; 0: all is */
    int64_t kept_sequence;  /* the number of the line at kept_bytes */
    dt_journal_mark *marks; /* of every DT_JOURNAL_MARK_EVERYth line, and of each after a jump */
    size_t mark_count, mark_capacity;
} dt_journal;

#define DT_JOURNAL_MARK_EVERY 1024
#define DT_JOURNAL_JUMP       ((int64_t)1 << 30)

/* Each line of an existing journal, in order; the object is borrowed. */
typedef void dt_journal_fn(void *context, const json_t *event);

/* Opens or makes the file; what a crash left of a last line is cut off. */
dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err);
void dt_journal_close(dt_journal *journal); /* accepts one of zero bytes whose descriptors are -1 */

/* Takes `event` (its reference) and gives it its number and time. */
void dt_journal_add(dt_journal *journal, json_t *event);

/* Who reads has seen the numbers below `sequence`: none of them is given any more. */
void dt_journal_skip_to(dt_journal *journal, int64_t sequence);

/* Writes what is pending. DT_ERR_IO: it stays pending. */
dt_status dt_journal_flush(dt_journal *journal, dt_error *err);

/* Where the first line numbered `sequence` or higher begins that can be read. Where that is not
 * written yet, lines of lower numbers may come first. */
dt_status dt_journal_offset(dt_journal *journal, int64_t sequence, int64_t *offset, dt_error *err);

/* Whole lines from *offset into `out` (reset first), about `want` bytes or one line, without those
 * that are damaged; *offset is moved past them. Empty at the end, or where all were damaged. */
dt_status dt_journal_read(dt_journal *journal, int64_t *offset, size_t want, dt_strbuf *out,
                          dt_error *err);

/* --- scan.c */
void dt_journal_mark_add(dt_journal *journal, int64_t sequence, int64_t offset);
/* From the beginning to the end: the marks, the next number, and where the last whole line ends. */
dt_status dt_journal_scan(dt_journal *journal, dt_journal_fn *seen, void *context, dt_error *err);
/* To PATH.damaged, as far as that has room; counted. */
void dt_journal_set_aside(dt_journal *journal, const char *bytes, size_t length);

/* --- trim.c */
dt_status dt_journal_note_open(dt_journal *journal, const char *path, dt_error *err);
void dt_journal_keep_head(dt_journal *journal); /* what was added so far stays */

/* Gives what lies before event `sequence`, and below most_bytes, back to the disk, where that is
 * worth it and the head is known. An error leaves the journal good: it only grows. */
dt_status dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes, dt_error *err);

#endif
