/* trim: frees the disk space of journal lines that are acknowledged.
 *
 *   | head: start of the ranks | ... freed ... | not acknowledged yet |
 *   0                     head_bytes      kept_bytes
 *
 * The middle becomes a hole in the file, so all offsets stay the same. A note of one line next to the file says
 * where the hole is. The note is synced before the hole is made, it is overwritten in place (which works on a
 * full disk), and the next agent that opens the journal relies on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/agent/journal/journal.h"

#define NOTE_BYTES  64
#define BLOCK_BYTES 4096
#define EVERY_BYTES ((int64_t)1 << 20) /* less is not worth a write and two system calls */

/* Checksum of the note: a damaged digit must not move the hole. */
static long long check_of(long long head, long long bytes, long long sequence)
{
    return (head * 31 + bytes * 17 + sequence * 7 + 3) % 99991;
}

dt_status dt_journal_note_open(dt_journal *journal, const char *path, dt_error *err)
{
    char text[NOTE_BYTES + 1] = "";
    long long head, bytes, sequence, check;
    dt_strbuf name;

    dt_strbuf_init(&name);
    dt_strbuf_add_fmt(&name, "%s.trim", path);
    journal->note_fd = open(name.data, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    dt_strbuf_release(&name);
    if (journal->note_fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open '%s.trim': %s", path, strerror(errno));
    if (pread(journal->note_fd, text, NOTE_BYTES, 0) == NOTE_BYTES &&
        sscanf(text, "%lld %lld %lld %lld", &head, &bytes, &sequence, &check) == 4 &&
        check == check_of(head, bytes, sequence) && head > 0 && head <= bytes && sequence > 0) {
        journal->head_bytes = head;
        journal->kept_bytes = bytes;
        journal->kept_sequence = sequence;
    }
    return DT_OK;
}

void dt_journal_keep_head(dt_journal *journal)
{
    journal->head_bytes = journal->written_bytes + (int64_t)journal->pending.length;
}

static dt_status write_note(dt_journal *journal, int64_t bytes, int64_t sequence, dt_error *err)
{
    char text[NOTE_BYTES + 1];

    snprintf(text, sizeof(text), "%-*s", NOTE_BYTES, "");
    snprintf(text, sizeof(text), "%lld %lld %lld %lld", (long long)journal->head_bytes,
             (long long)bytes, (long long)sequence, check_of(journal->head_bytes, bytes, sequence));
    text[strlen(text)] = ' ';
    text[NOTE_BYTES - 1] = '\n';
    if (pwrite(journal->note_fd, text, NOTE_BYTES, 0) != NOTE_BYTES ||
        fdatasync(journal->note_fd) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot record the trimmed part of the journal: %s",
                       strerror(errno));
    return DT_OK;
}

/* Returns the last mark at or before `sequence`; NULL if there is none, or only the first line. */
static const dt_journal_mark *last_mark(const dt_journal *journal, int64_t sequence)
{
    size_t count = journal->mark_count;

    while (count > 0 && journal->marks[count - 1].sequence > sequence)
        count--;
    return count > 1 ? &journal->marks[count - 1] : NULL;
}

dt_status dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes, dt_error *err)
{
    const dt_journal_mark *mark = last_mark(journal, sequence);
    int64_t from = (journal->head_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    int64_t kept, to;
    dt_status st;

    if (journal->head_bytes == 0 || mark == NULL)
        return DT_OK;
    kept = mark->offset;
    to = kept / BLOCK_BYTES * BLOCK_BYTES;
    if (kept > most_bytes || kept > journal->whole_bytes || to - from < EVERY_BYTES ||
        kept - journal->kept_bytes < EVERY_BYTES)
        return DT_OK;
    st = write_note(journal, kept, mark->sequence, err);
    if (st != DT_OK)
        return st;
    journal->kept_bytes = kept;
    journal->kept_sequence = mark->sequence;
    if (fallocate(journal->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from) != 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "cannot free disk space of the journal: %s",
                       strerror(errno));
    return DT_OK;
}
