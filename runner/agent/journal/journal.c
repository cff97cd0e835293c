/* journal: the file of numbered events: it is read at the start, appended to, sent from, and trimmed from
 * its front. */
#include "runner/agent/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runner/channel/protocol.h"

/* scan: finds the valid lines of a journal file.
 *
 * A damaged line, wherever it is, costs only itself (and its neighbour, if the newline was damaged): it is
 * set aside, and the scan continues at the next valid line. Blocks of zeros, which a power loss may leave, are
 * skipped like holes.
 */

#define READ_BYTES  ((size_t)65536)
#define LINE_BYTES  ((size_t)4 << 20) /* a longer line is not of the agent */
#define ASIDE_BYTES ((off_t)1 << 20)

/* --- marks and damaged lines */

static void journal_mark_add(dt_journal *journal, int64_t sequence, int64_t offset)
{
    journal->marks = dt_array_room(journal->marks, journal->mark_count + 1, &journal->mark_capacity,
                                   sizeof(journal->marks[0]));
    journal->marks[journal->mark_count++] = (dt_journal_mark){sequence, offset};
}

/* Counts damaged lines and copies them to PATH.damaged, as far as there is space. */
static void journal_set_aside(dt_journal *journal, const char *bytes, size_t length)
{
    dt_strbuf path;
    int fd;

    journal->damaged_lines++;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s.damaged", journal->path);
    fd = open(path.data, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    dt_strbuf_release(&path);
    if (fd < 0)
        return;
    if (lseek(fd, 0, SEEK_END) < ASIDE_BYTES && write(fd, bytes, length) == (ssize_t)length &&
        write(fd, "\n", 1) < 0)
        errno = 0; /* for people only: what does not fit is left out */
    close(fd);
}

/* --- the scan */

typedef struct scan {
    dt_journal *journal;
    int64_t at;       /* file offset of buffer.data[0] */
    dt_strbuf buffer; /* bytes that were read but not scanned */
    int64_t last;     /* number of the last valid line, -1: none */
    dt_journal_fn *seen;
    void *context;
} scan;

static void take_line(scan *s, const char *line, size_t length)
{
    dt_journal *journal = s->journal;
    int64_t sequence = dt_journal_line_sequence(line, length);
    json_t *event = NULL;

    if (sequence <= s->last || dt_json_parse(&event, line, length, "journal", NULL) != DT_OK) {
        journal_set_aside(journal, line, length);
        return;
    }
    if (sequence % DT_JOURNAL_MARK_EVERY == 0 || sequence != s->last + 1 ||
        s->at == journal->kept_bytes)
        journal_mark_add(journal, sequence, s->at);
    s->last = sequence;
    journal->next_sequence = sequence + 1;
    s->seen(s->context, event);
    json_decref(event);
}

/* Skips the hole that trim made, or zeros where nothing was written. */
static void skip_hole(scan *s)
{
    const dt_journal *journal = s->journal;
    off_t data;

    if (journal->kept_bytes > 0 && s->at >= journal->head_bytes && s->at < journal->kept_bytes) {
        s->at = journal->kept_bytes;
        s->last = s->last < journal->kept_sequence - 1 ? journal->kept_sequence - 1 : s->last;
        dt_strbuf_reset(&s->buffer);
        return;
    }
    if (s->buffer.length > 0)
        return;
    data = lseek(journal->fd, (off_t)s->at, SEEK_DATA);
    if (data > s->at)
        s->at = data;
}

/* Reads more of the file; returns 0 at the end. */
static ssize_t fill(scan *s)
{
    char bytes[READ_BYTES];
    size_t zeros = 0;
    ssize_t got;

    do
        got = pread(s->journal->fd, bytes, sizeof(bytes), s->at + (int64_t)s->buffer.length);
    while (got < 0 && errno == EINTR);
    while (s->buffer.length == 0 && got > 0 && zeros < (size_t)got && bytes[zeros] == '\0')
        zeros++;
    if (zeros > 0) {
        s->journal->damaged_lines++;
        s->at += (int64_t)zeros;
    }
    if (got > 0)
        dt_strbuf_add(&s->buffer, bytes + zeros, (size_t)got - zeros);
    return got;
}

static void drop_front(scan *s, size_t bytes)
{
    dt_strbuf_remove_front(&s->buffer, bytes);
    s->at += (int64_t)bytes;
}

/* Returns how much of the buffer may be scanned: it must not cross the end of the head before a
 * hole. */
static size_t readable(const scan *s)
{
    const dt_journal *journal = s->journal;

    if (journal->kept_bytes > 0 && s->at < journal->head_bytes &&
        s->at + (int64_t)s->buffer.length > journal->head_bytes)
        return (size_t)(journal->head_bytes - s->at);
    return s->buffer.length;
}

/* Scans the whole file: sets the marks, the next number, and the end of the last complete line. */
static dt_status journal_scan(dt_journal *journal, dt_journal_fn *seen, void *context,
                              dt_error *err)
{
    scan s = {.journal = journal, .last = -1, .seen = seen, .context = context};
    dt_status st = DT_OK;
    ssize_t got = 1;

    dt_strbuf_init(&s.buffer);
    while (got > 0) {
        const char *newline;
        size_t most;

        skip_hole(&s);
        most = readable(&s);
        newline = memchr(s.buffer.data, '\n', most);
        /* the last line of the head has no newline */
        if (newline == NULL && most < s.buffer.length) {
            journal_set_aside(journal, s.buffer.data, most);
            drop_front(&s, most);
        } else if (newline != NULL) {
            size_t length = (size_t)(newline - s.buffer.data);

            take_line(&s, s.buffer.data, length);
            drop_front(&s, length + 1);
            journal->whole_bytes = s.at;
        } else if (s.buffer.length > LINE_BYTES) {
            journal_set_aside(journal, s.buffer.data, 256);
            drop_front(&s, s.buffer.length);
        } else {
            got = fill(&s);
        }
    }
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read the journal '%s': %s", journal->path,
                 strerror(errno));
    if (s.buffer.length > 0) /* an incomplete line, or one with a damaged newline */
        journal_set_aside(journal, s.buffer.data, s.buffer.length);
    if (s.last >= journal->next_sequence)
        journal->next_sequence = s.last + 1; /* everything after the hole is lost */
    journal->opened_again = s.at + (int64_t)s.buffer.length > 0;
out:
    dt_strbuf_release(&s.buffer);
    return st;
}

/* trim: frees the disk space of journal lines that are acknowledged.
 *
 *   | head: start of the ranks | ... freed ... | not acknowledged yet |
 *   0                     head_bytes      kept_bytes
 *
 * The middle becomes a hole in the file, so all offsets stay the same. A note of one line next to the file says
 * where the hole is. The note is synced before the hole is made, it is overwritten in place (which works on a
 * full disk), and the next agent that opens the journal relies on it.
 */

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

#define LOG_PENDING_BYTES ((size_t)1 << 20)

dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err)
{
    dt_status st = DT_OK;

    memset(journal, 0, sizeof(*journal));
    dt_strbuf_init(&journal->pending);
    journal->note_fd = -1;
    journal->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open the journal '%s': %s", path, strerror(errno));
    journal->path = dt_strdup(path);
    DT_TRY(dt_journal_note_open(journal, path, err));
    DT_TRY(journal_scan(journal, seen, context, err));
    if (ftruncate(journal->fd, journal->whole_bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot repair the journal '%s': %s", path, strerror(errno));
    journal->written_bytes = journal->whole_bytes;
out:
    return st;
}

void dt_journal_close(dt_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->note_fd >= 0)
        close(journal->note_fd);
    journal->fd = journal->note_fd = -1;
    dt_strbuf_release(&journal->pending);
    free(journal->marks);
    free(journal->path);
    journal->marks = NULL;
    journal->path = NULL;
}

static bool must_last(const char *kind)
{
    static const char *const kinds[] = {"checkpoint", "exited", "finished", "failed", "released"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

/* Numbers an event. A previous agent may have given more numbers than its journal still shows,
 * so the first number after opening jumps. */
static void number(dt_journal *journal, json_t *event)
{
    int64_t last = journal->next_sequence - 1;
    bool jump = journal->opened_again;

    if (jump)
        journal->next_sequence = (journal->next_sequence / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;
    journal->opened_again = false;
    if (jump || journal->mark_count == 0 || journal->next_sequence % DT_JOURNAL_MARK_EVERY == 0)
        journal_mark_add(journal, journal->next_sequence,
                         journal->written_bytes + (int64_t)journal->pending.length);
    json_object_del(event, "sequence"); /* so that the new one comes last */
    json_object_del(event, "sum");
    json_object_set_new(event, "sequence", json_integer(journal->next_sequence));
    if (jump)
        json_object_set_new(event, "after", json_integer(last));
    if (!journal->version_said)
        json_object_set_new(event, "journal", json_integer(DT_PROTOCOL_JOURNAL_VERSION));
    journal->version_said = true;
    journal->next_sequence++;
}

void dt_journal_skip_to(dt_journal *journal, int64_t sequence)
{
    int64_t next = journal->next_sequence;

    if (journal->opened_again)
        next = (next / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;
    if (sequence <= next)
        return;
    journal->opened_again = false;
    journal->next_sequence = sequence;
    journal_mark_add(journal, sequence, journal->written_bytes + (int64_t)journal->pending.length);
}

void dt_journal_add(dt_journal *journal, json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));
    size_t begins;

    DT_ASSERT(kind != NULL);
    if (strcmp(kind, "log") == 0 && journal->pending.length > LOG_PENDING_BYTES) {
        journal->dropped_lines++;
        json_decref(event);
        return;
    }
    number(journal, event);
    json_object_set_new(event, "time_ms", json_integer(dt_clock_wall_ms()));
    begins = journal->pending.length;
    dt_json_write(&journal->pending, event);
    dt_journal_line_sign(&journal->pending, begins);
    dt_strbuf_add_char(&journal->pending, '\n');
    journal->sync_wanted = journal->sync_wanted || must_last(kind);
    json_decref(event);
}

/* Reports dropped lines; with rank -1, because several ranks may have printed them. */
static void report_dropped(dt_journal *journal)
{
    char text[128];

    snprintf(text, sizeof(text),
             "%lld lines of output were dropped: the journal could not be written",
             (long long)journal->dropped_lines);
    journal->dropped_lines = 0;
    dt_journal_add(journal, json_pack("{s:s, s:i, s:s, s:s}", "event", "log", "rank", -1, "stream",
                                      "agent", "text", text));
}

dt_status dt_journal_flush(dt_journal *journal, dt_error *err)
{
    while (journal->pending.length > 0) {
        ssize_t put = write(journal->fd, journal->pending.data, journal->pending.length);
        const char *newline;

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot write the journal: %s", strerror(errno));
        newline = memrchr(journal->pending.data, '\n', (size_t)put);
        if (newline != NULL)
            journal->whole_bytes = journal->written_bytes + (newline - journal->pending.data) + 1;
        journal->written_bytes += put;
        dt_strbuf_remove_front(&journal->pending, (size_t)put);
        if (journal->pending.length == 0 && journal->dropped_lines > 0)
            report_dropped(journal);
    }
    if (journal->sync_wanted && fdatasync(journal->fd) != 0 && errno != EINVAL)
        return DT_FAIL(err, DT_ERR_IO, "cannot sync the journal: %s", strerror(errno));
    journal->sync_wanted = false;
    return DT_OK;
}

/* Returns the end of the readable part that contains *offset: the head ends at the hole. */
static int64_t readable_end(const dt_journal *journal, int64_t *offset)
{
    if (journal->kept_bytes == 0 || *offset >= journal->kept_bytes)
        return journal->whole_bytes;
    if (*offset < journal->head_bytes)
        return journal->head_bytes;
    *offset = journal->kept_bytes;
    return journal->whole_bytes;
}

/* Reads complete lines as they are in the file. */
static dt_status read_raw(const dt_journal *journal, int64_t offset, int64_t end, size_t want,
                          dt_strbuf *out, dt_error *err)
{
    char chunk[16384];

    dt_strbuf_reset(out);
    while (offset < end) {
        int64_t left = end - offset;
        const char *newline = memrchr(out->data, '\n', out->length);
        ssize_t got;

        if (out->length >= want && newline != NULL)
            break;
        got = pread(journal->fd, chunk,
                    left < (int64_t)sizeof(chunk) ? (size_t)left : sizeof(chunk), offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot read the journal: %s",
                           got < 0 ? strerror(errno) : "the file became shorter");
        dt_strbuf_add(out, chunk, (size_t)got);
        offset += got;
    }
    while (offset < end && out->length > 0 && out->data[out->length - 1] != '\n')
        out->data[--out->length] = '\0';
    return DT_OK;
}

/* Removes damaged lines from `out`. */
static void take_damaged_out(dt_journal *journal, dt_strbuf *out)
{
    size_t kept = 0, at = 0;

    while (at < out->length) {
        const char *newline = memchr(out->data + at, '\n', out->length - at);
        size_t length = (newline != NULL ? (size_t)(newline - out->data) : out->length) - at;
        size_t whole = length + (newline != NULL ? 1 : 0);

        if (newline != NULL && dt_journal_line_sequence(out->data + at, length) >= 0) {
            memmove(out->data + kept, out->data + at, whole);
            kept += whole;
        } else {
            journal_set_aside(journal, out->data + at, length);
        }
        at += whole;
    }
    out->length = kept;
    out->data[kept] = '\0';
}

dt_status dt_journal_read(dt_journal *journal, int64_t *offset, size_t want, dt_strbuf *out,
                          dt_error *err)
{
    int64_t end = readable_end(journal, offset);
    dt_status st = read_raw(journal, *offset, end, want, out, err);

    if (st == DT_OK) {
        *offset += (int64_t)out->length;
        take_damaged_out(journal, out);
    }
    return st;
}

/* Returns the offset of the last mark at or before `sequence`; 0 if there is none. */
static int64_t nearest_mark(const dt_journal *journal, int64_t sequence)
{
    size_t low = 0, high = journal->mark_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (journal->marks[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? journal->marks[low - 1].offset : 0;
}

/* Returns the bytes of the lines whose numbers are below `sequence`. */
static size_t count_below(const dt_strbuf *lines, int64_t sequence)
{
    size_t at = 0;

    while (at < lines->length) {
        const char *newline = memchr(lines->data + at, '\n', lines->length - at);
        size_t length = (newline != NULL ? (size_t)(newline - lines->data) : lines->length) - at;

        if (dt_journal_line_sequence(lines->data + at, length) >= sequence)
            break;
        at += length + (newline != NULL ? 1 : 0);
    }
    return at;
}

dt_status dt_journal_offset(dt_journal *journal, int64_t sequence, int64_t *offset, dt_error *err)
{
    int64_t at = nearest_mark(journal, sequence), end;
    dt_status st = DT_OK;
    dt_strbuf lines;

    *offset = 0;
    if (sequence < journal->kept_sequence && at >= journal->head_bytes)
        at = journal->kept_bytes;
    dt_strbuf_init(&lines);
    while (at < journal->whole_bytes) {
        size_t below;

        end = readable_end(journal, &at);
        DT_TRY(read_raw(journal, at, end, 16384, &lines, err));
        if (lines.length == 0)
            break;
        below = count_below(&lines, sequence);
        at += (int64_t)below;
        if (below < lines.length)
            break;
    }
    *offset = at < journal->whole_bytes ? at : journal->whole_bytes; /* not written yet */
out:
    dt_strbuf_release(&lines);
    return st;
}
