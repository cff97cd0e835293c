/* journal: keeps the agent's append-only, numbered record of events.
 *
 * Invariants
 *   1 An event is in the file before any byte of it is sent; what is sent is read from the file.
 *   2 The numbers of the lines rise, and none is given twice, whatever happened to the file: an agent that opens
 *     an existing journal continues at the next multiple of DT_JOURNAL_JUMP, which is larger than any number that
 *     the previous agent can have given. The first line after such a jump has `after`, the number of the last
 *     line before it. Any other jump is a loss: lines that were damaged, or trimmed because they were
 *     acknowledged.
 *   3 A line that was started is completed before the next one starts, also on a full disk.
 *   4 A line ends with `sum`, a checksum of what is before it. A damaged line is never sent: it is written to
 *     PATH.damaged and counted, and the journal continues after it.
 *   5 The first line that an agent writes has `journal`, the version of its lines. A journal of another version
 *     is not served, and nothing is added to it.
 *
 * Durability  a batch is one write(), which survives the death of the process; events that a run cannot do
 *             without (checkpoint, exited, finished, failed, released) are synced before they are sent
 * Full disk   lines wait in memory and are written when there is space; rank output (`log`) beyond 1 MiB of
 *             waiting lines is dropped, counted, and reported
 * Threads     call from the loop's thread
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
    int64_t whole_bytes;   /* end of the last complete line of the file: may be read up to here */
    int64_t written_bytes; /* size of the file */
    dt_strbuf pending;     /* lines that are not in the file yet; the first may be partly written */
    bool sync_wanted;
    bool opened_again;     /* the next line is the first after a jump */
    bool version_said;     /* this agent has written the version */
    int64_t damaged_lines; /* found since it was opened */
    char *path;
    int64_t dropped_lines;
    int note_fd;           /* file that records the trimmed part (journal.c) */
    int64_t head_bytes;    /* size of the beginning, which a restarted agent needs; 0: unknown */
    int64_t kept_bytes;    /* the part from the head to here is trimmed; 0: nothing is */
    int64_t kept_sequence; /* number of the line at kept_bytes */
    /* offsets of every DT_JOURNAL_MARK_EVERYth line, and of each after a jump */
    dt_journal_mark *marks;
    size_t mark_count;
    int64_t mark_capacity;
} dt_journal;

#define DT_JOURNAL_MARK_EVERY 1024
#define DT_JOURNAL_JUMP       ((int64_t)1 << 30)

/* Called with each line of an existing journal, in order; the object is borrowed. */
typedef void dt_journal_fn(void *context, const json_t *event);

/* Opens or creates the file; an incomplete last line is truncated. */
dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err);
void dt_journal_close(dt_journal *journal); /* accepts a zeroed struct whose descriptors are -1 */

/* Adds an event, and sets its number and time. Takes the reference. */
void dt_journal_add(dt_journal *journal, json_t *event);

/* Skips numbers below `sequence`: the reader has seen them, so none of them may be given again. */
void dt_journal_skip_to(dt_journal *journal, int64_t sequence);

/* Writes pending lines. DT_ERR_IO: they stay pending. */
dt_status dt_journal_flush(dt_journal *journal, dt_error *err);

/* Sets *offset to the first readable line numbered `sequence` or higher. If that is not written
 * yet, lines with lower numbers may come first. */
dt_status dt_journal_offset(dt_journal *journal, int64_t sequence, int64_t *offset, dt_error *err);

/* Reads complete lines from *offset into `out` (reset first), about `want` bytes or one line,
 * without damaged lines, and advances *offset. `out` is empty at the end, or if all lines were
 * damaged. */
dt_status dt_journal_read(dt_journal *journal, int64_t *offset, size_t want, dt_strbuf *out,
                          dt_error *err);

/* --- journal.c */
dt_status dt_journal_note_open(dt_journal *journal, const char *path, dt_error *err);
void dt_journal_keep_head(dt_journal *journal); /* keeps everything added so far */

/* Frees the disk space of lines before event `sequence` and below most_bytes, if that is worth
 * it and the head is known. After an error the journal is still valid: it only grows. */
dt_status dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes, dt_error *err);

#endif
