#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "runner/agent/journal/journal.h"

static char folder[64], path[96];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/dtrun-journal.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/journal.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return dt_file_remove_tree(folder, NULL) != DT_OK;
}

/* The first tests share a journal, each continuing it; those with their own folder follow. */
static char shared[sizeof(folder)];

static int make_shared(void **state)
{
    int failed = make_folder(state);

    memcpy(shared, folder, sizeof(shared));
    return failed;
}

static int remove_shared(void **state)
{
    return dt_file_remove_tree(shared, NULL) != DT_OK;
}

static void count_event(void *context, const json_t *event)
{
    ++*(int64_t *)context;
}

static int64_t open_journal(dt_journal *journal)
{
    dt_error err = DT_ERROR_INIT;
    int64_t seen = 0;

    assert_int_equal(dt_journal_open(journal, path, count_event, &seen, &err), DT_OK);
    return seen;
}

static void add_log(dt_journal *journal, int64_t number)
{
    dt_journal_add(journal, json_pack("{s:s, s:I, s:s}", "event", "log", "number",
                                      (json_int_t)number, "text", "of a rank"));
}

static int64_t number_at(dt_journal *journal, int64_t sequence)
{
    json_t *event = NULL;
    int64_t offset, number;
    dt_strbuf lines;

    dt_strbuf_init(&lines);
    assert_int_equal(dt_journal_offset(journal, sequence, &offset, NULL), DT_OK);
    assert_int_equal(dt_journal_read(journal, &offset, 1, &lines, NULL), DT_OK);
    *strchr(lines.data, '\n') = '\0';
    assert_int_equal(dt_json_parse(&event, lines.data, strlen(lines.data), "line", NULL), DT_OK);
    assert_int_equal(json_integer_value(json_object_get(event, "sequence")), sequence);
    number = json_integer_value(json_object_get(event, "number"));
    json_decref(event);
    dt_strbuf_release(&lines);
    return number;
}

static void test_every_event_is_found_by_its_number_after_opening_again(void **state)
{
    const int64_t total = 3 * DT_JOURNAL_MARK_EVERY + 17;
    dt_journal journal;
    int64_t offset;

    assert_int_equal(open_journal(&journal), 0);
    for (int64_t i = 0; i < total; i++) {
        add_log(&journal, 10 * i);
        if (i % 100 == 0)
            assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    }
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < total; i += 51)
            assert_int_equal(number_at(&journal, i), 10 * i);
        assert_int_equal(number_at(&journal, DT_JOURNAL_MARK_EVERY), 10 * DT_JOURNAL_MARK_EVERY);
        assert_int_equal(dt_journal_offset(&journal, total, &offset, NULL), DT_OK);
        assert_int_equal(offset, journal.whole_bytes);
        assert_int_equal(dt_journal_offset(&journal, total + 1, &offset, NULL), DT_OK);
        assert_int_equal(offset, journal.whole_bytes);
        dt_journal_close(&journal);
        assert_int_equal(open_journal(&journal), total);
    }
    dt_journal_close(&journal);
}

static void test_what_a_crash_left_of_a_line_is_cut_off(void **state)
{
    static const char *const tails[] = {"{\"event\":\"log\",\"seq", "{\"sequence\":5}\n",
                                        "not json\n", "\1\2\n"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        dt_journal journal;
        FILE *file;

        unlink(path);
        open_journal(&journal);
        add_log(&journal, 0);
        add_log(&journal, 1);
        assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
        dt_journal_close(&journal);
        file = fopen(path, "a");
        fputs(tails[i], file);
        fclose(file);
        assert_int_equal(open_journal(&journal), 2);
        assert_int_equal(journal.damaged_lines, 1);
        add_log(&journal, 2);
        assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
        assert_int_equal(number_at(&journal, DT_JOURNAL_JUMP), 2);
        dt_journal_close(&journal);
        assert_int_equal(open_journal(&journal), 3);
        dt_journal_close(&journal);
    }
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_full_disk_loses_no_event_and_splits_no_line(void **state)
{
    dt_error err = DT_ERROR_INIT;
    int64_t written, seen, offset = 0;
    dt_journal journal;
    dt_strbuf lines;

    signal(SIGXFSZ, SIG_IGN);
    unlink(path);
    dt_strbuf_init(&lines);
    open_journal(&journal);
    set_file_limit(1010); /* inside a line */
    for (int64_t i = 0; i < 50; i++)
        add_log(&journal, i);
    assert_int_equal(dt_journal_flush(&journal, &err), DT_ERR_IO);
    assert_non_null(strstr(err.message, "cannot write the journal"));
    written = journal.whole_bytes;
    assert_true(written > 0 && written < 1010);
    assert_int_equal(dt_journal_read(&journal, &offset, 65536, &lines, NULL), DT_OK);
    assert_int_equal(lines.length, written);
    assert_int_equal(lines.data[lines.length - 1], '\n');

    /* Beyond a bound, lines that a rank prints are dropped, its events are not. */
    for (int64_t i = 0; i < 20000; i++)
        add_log(&journal, i);
    assert_true(journal.dropped_lines > 0);
    dt_journal_add(&journal, json_pack("{s:s}", "event", "released"));
    seen = journal.next_sequence;
    set_file_limit(RLIM_INFINITY);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    /* The event that reports the dropped lines. */
    assert_int_equal(journal.next_sequence, seen + 1);
    dt_journal_close(&journal);
    assert_int_equal(open_journal(&journal), seen + 1);
    dt_journal_close(&journal);
    dt_strbuf_release(&lines);
}

static void test_a_line_larger_than_a_read_comes_whole(void **state)
{
    char *big = calloc(1, 300001);
    int64_t offset = 0;
    dt_journal journal;
    dt_strbuf lines;

    unlink(path);
    dt_strbuf_init(&lines);
    memset(big, 'x', 300000);
    open_journal(&journal);
    dt_journal_add(&journal, json_pack("{s:s, s:s}", "event", "log", "text", big));
    add_log(&journal, 1);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    assert_int_equal(dt_journal_read(&journal, &offset, 100, &lines, NULL), DT_OK);
    assert_true(lines.length > 300000 && lines.data[lines.length - 1] == '\n');
    assert_int_equal(number_at(&journal, 1), 1);
    dt_journal_close(&journal);
    dt_strbuf_release(&lines);
    free(big);
}

static int64_t bytes_on_disk(void)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return (int64_t)info.st_blocks * 512;
}

static void note_first(void *context, const json_t *event)
{
    int64_t *seen = context; /* number of lines, and the number of the last */

    seen[0]++;
    dt_json_get_int(&seen[1], event, "sequence", "journal", NULL);
}

static void test_what_is_acknowledged_goes_back_to_the_disk(void **state)
{
    enum { LINES = 60000, SAFE = 50000, HEAD = 10 };
    dt_error err = DT_ERROR_INIT;
    int64_t before, offset, seen[2] = {0, -1};
    dt_journal journal;

    open_journal(&journal);
    for (int64_t i = 0; i < HEAD; i++)
        add_log(&journal, i);
    dt_journal_keep_head(&journal);
    for (int64_t i = HEAD; i < LINES; i++) {
        add_log(&journal, i);
        assert_int_equal(dt_journal_flush(&journal, &err), DT_OK);
    }
    before = bytes_on_disk();
    assert_true(before > 4 << 20);
    assert_int_equal(dt_journal_trim(&journal, SAFE, 100, &err), DT_OK); /* no reader got more */
    assert_int_equal(journal.kept_sequence, 0);
    if (dt_journal_trim(&journal, SAFE, journal.whole_bytes, &err) == DT_ERR_UNSUPPORTED) {
        dt_journal_close(&journal);
        print_message("skipped: %s\n", err.message);
        skip();
    }
    assert_true(bytes_on_disk() < before / 4);
    assert_true(journal.kept_sequence <= SAFE && journal.kept_sequence > SAFE - 1024);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(number_at(&journal, SAFE), SAFE);
        assert_int_equal(number_at(&journal, journal.kept_sequence), journal.kept_sequence);
        assert_int_equal(number_at(&journal, journal.kept_sequence + 1), journal.kept_sequence + 1);
        /* Trimmed lines are missing; the head is still there. */
        assert_int_equal(dt_journal_offset(&journal, journal.kept_sequence - 1, &offset, &err),
                         DT_OK);
        assert_int_equal(offset, journal.kept_bytes);
        assert_int_equal(number_at(&journal, 0), 0);
        assert_int_equal(number_at(&journal, HEAD - 1), HEAD - 1);
        assert_int_equal(dt_journal_offset(&journal, HEAD, &offset, NULL), DT_OK);
        assert_true(offset == journal.head_bytes || offset == journal.kept_bytes);
        if (again == 1)
            break;
        dt_journal_close(&journal); /* the same after opening again */
        assert_int_equal(dt_journal_open(&journal, path, note_first, seen, &err), DT_OK);
        assert_true(seen[0] >= HEAD + LINES - SAFE && seen[0] < HEAD + LINES - SAFE + 1200);
        assert_int_equal(seen[1], LINES - 1);
    }
    add_log(&journal, LINES);
    assert_int_equal(dt_journal_flush(&journal, &err), DT_OK);
    assert_int_equal(number_at(&journal, DT_JOURNAL_JUMP), LINES);
    assert_int_equal(number_at(&journal, LINES - 1), LINES - 1);
    assert_int_equal(journal.damaged_lines, 0);
    assert_int_equal(dt_journal_trim(&journal, LINES, journal.whole_bytes, &err), DT_OK);
    dt_journal_close(&journal);
}

static void test_a_damaged_note_is_ignored(void **state)
{
    dt_journal journal;
    dt_strbuf note;

    open_journal(&journal);
    add_log(&journal, 0);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    dt_journal_close(&journal);
    dt_strbuf_init(&note);
    dt_strbuf_add_fmt(&note, "%s.trim", path);
    assert_int_equal(dt_file_write_atomic(note.data, "1 2 3 nonsense", 14, 0600, NULL), DT_OK);
    dt_strbuf_release(&note);
    assert_int_equal(open_journal(&journal), 1);
    assert_int_equal(journal.kept_sequence, 0);
    dt_journal_close(&journal);
}

typedef struct heard {
    int64_t numbers[32]; /* `number` of each line that was read */
    size_t count;
    int64_t last; /* sequence */
} heard;

static void hear(void *context, const json_t *event)
{
    heard *all = context;
    int64_t sequence = json_integer_value(json_object_get(event, "sequence"));

    assert_true(all->count < 32 && sequence > all->last);
    all->last = sequence;
    all->numbers[all->count++] = json_integer_value(json_object_get(event, "number"));
}

static void write_journal(const dt_strbuf *bytes)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_int_equal(write(fd, bytes->data, bytes->length), (int64_t)bytes->length);
    close(fd);
}

/* Flips several bits of every byte: only the damaged line and at most its neighbour are lost,
 * the loss is reported, and no number is used again. */
static void test_a_flipped_byte_costs_its_line_and_is_reported(void **state)
{
    enum { LINES = 6 };
    static const unsigned char masks[] = {0x01, 0x02, 0x20, 0x80, 0xff};
    dt_error err = DT_ERROR_INIT;
    dt_strbuf whole, aside;
    dt_journal journal;

    unlink(path);
    open_journal(&journal);
    for (int64_t i = 0; i < LINES; i++)
        add_log(&journal, i);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    dt_journal_close(&journal);
    dt_strbuf_init(&whole);
    dt_strbuf_init(&aside);
    dt_strbuf_add_fmt(&aside, "%s.damaged", path);
    assert_int_equal(dt_file_read(&whole, path, 1 << 20, &err), DT_OK);
    for (size_t at = 0; at < whole.length; at++)
        for (size_t m = 0; m <= sizeof(masks); m++) {
            char old = whole.data[at];
            size_t line = 0;
            heard all = {.last = -1};
            int64_t more[2] = {0, -1};

            for (size_t i = 0; i < at; i++)
                line += whole.data[i] == '\n';
            whole.data[at] = m < sizeof(masks) ? (char)(old ^ masks[m]) : '\n';
            if (whole.data[at] == old)
                continue;
            unlink(aside.data);
            write_journal(&whole);
            whole.data[at] = old;
            assert_int_equal(dt_journal_open(&journal, path, hear, &all, &err), DT_OK);
            assert_true(all.count >= LINES - 2 && all.count <= LINES);
            for (size_t i = 0; i < all.count; i++)
                assert_true(all.numbers[i] >= 0 && all.numbers[i] < LINES);
            for (size_t i = 0; i < LINES; i++) { /* undamaged lines are there */
                bool found = false;

                for (size_t k = 0; k < all.count; k++)
                    found = found || all.numbers[k] == (int64_t)i;
                assert_true(found || i == line || (i == line + 1 && old == '\n'));
            }
            if (all.count < LINES) {
                assert_true(journal.damaged_lines > 0);
                assert_true(dt_file_exists(aside.data));
            }
            add_log(&journal, 77);
            assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
            assert_int_equal(number_at(&journal, DT_JOURNAL_JUMP), 77);
            dt_journal_close(&journal);
            assert_int_equal(dt_journal_open(&journal, path, note_first, more, &err), DT_OK);
            assert_int_equal(more[0], all.count + 1);
            assert_int_equal(more[1], DT_JOURNAL_JUMP);
            dt_journal_close(&journal);
        }
    dt_strbuf_release(&whole);
    dt_strbuf_release(&aside);
}

/* Damage while the agent runs: damaged lines are not sent. */
static void test_what_is_damaged_is_never_read(void **state)
{
    dt_journal journal;
    dt_strbuf lines;
    int64_t offset, at;
    FILE *file;

    dt_strbuf_init(&lines);
    open_journal(&journal);
    for (int64_t i = 0; i < 5; i++)
        add_log(&journal, i);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    assert_int_equal(dt_journal_offset(&journal, 2, &at, NULL), DT_OK);
    file = fopen(path, "r+");
    fseek(file, (long)at + 30, SEEK_SET);
    fputc('~', file);
    fclose(file);
    assert_int_equal(number_at(&journal, 1), 1);
    assert_int_equal(number_at(&journal, 3), 3);
    assert_int_equal(dt_journal_offset(&journal, 2, &offset, NULL), DT_OK);
    assert_int_equal(dt_journal_read(&journal, &offset, 65536, &lines, NULL), DT_OK);
    assert_int_equal(offset, journal.whole_bytes);
    assert_non_null(strstr(lines.data, "\"number\":3"));
    assert_null(strstr(lines.data, "\"number\":2"));
    assert_true(journal.damaged_lines > 0);
    dt_journal_close(&journal);
    dt_strbuf_release(&lines);
}

/* Blocks of zeros, as after a power loss; a file that is shorter; an empty file. */
static void test_numbers_that_were_seen_are_not_given_again(void **state)
{
    dt_journal journal;
    int64_t end;
    char zeros[200] = {0};
    int fd;

    open_journal(&journal);
    for (int64_t i = 0; i < 20; i++)
        add_log(&journal, i);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    assert_int_equal(dt_journal_offset(&journal, 15, &end, NULL), DT_OK);
    dt_journal_close(&journal);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, zeros, sizeof(zeros), (off_t)end), (int64_t)sizeof(zeros));
    close(fd);
    assert_true(open_journal(&journal) < 20);
    assert_true(journal.damaged_lines > 0);
    assert_int_equal(number_at(&journal, 14), 14);
    assert_int_equal(number_at(&journal, 19), 19);
    dt_journal_close(&journal);
    assert_int_equal(truncate(path, (off_t)end), 0);
    assert_int_equal(open_journal(&journal), 15);
    dt_journal_skip_to(&journal, 20); /* the reader has seen 19 */
    add_log(&journal, 5);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    assert_int_equal(number_at(&journal, DT_JOURNAL_JUMP), 5);
    dt_journal_close(&journal);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(open_journal(&journal), 0);
    dt_journal_skip_to(&journal, 4000);
    add_log(&journal, 6);
    add_log(&journal, 7);
    assert_int_equal(dt_journal_flush(&journal, NULL), DT_OK);
    assert_int_equal(number_at(&journal, 4000), 6);
    assert_int_equal(number_at(&journal, 4001), 7);
    dt_journal_close(&journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_is_found_by_its_number_after_opening_again),
        cmocka_unit_test(test_what_a_crash_left_of_a_line_is_cut_off),
        cmocka_unit_test(test_a_full_disk_loses_no_event_and_splits_no_line),
        cmocka_unit_test(test_a_line_larger_than_a_read_comes_whole),
        cmocka_unit_test_setup_teardown(test_what_is_acknowledged_goes_back_to_the_disk,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_damaged_note_is_ignored, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_flipped_byte_costs_its_line_and_is_reported,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_what_is_damaged_is_never_read, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_numbers_that_were_seen_are_not_given_again,
                                        make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, make_shared, remove_shared);
}
