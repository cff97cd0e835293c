#include "store_support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "store/note.h"

static void add(test_store *t, int64_t node, int64_t sequence, const char *kind)
{
    dt_store_event event = {.attempt = 1,
                            .node = node,
                            .sequence = sequence,
                            .rank = -1,
                            .time_ms = 5,
                            .kind = kind,
                            .json = "{\"event\":\"x\"}"};

    assert_good(t, dt_store_event_add(t->store, "aa", &event, &t->err));
}

static void test_events_are_read_from_a_cursor(void **state)
{
    test_store *t = *state;
    dt_store_event *events;
    int64_t count, second;

    test_store_run(t, "aa", "n");
    test_store_run(t, "bb", "n");
    add(t, 0, 0, "started");
    add(t, 0, 1, "ready");
    add(t, 1, 0, "started");
    assert_good(t, dt_store_event_list(t->store, &events, &count, "aa", 0, 0, &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_string_equal(events[1].kind, "ready");
    assert_int_equal(events[1].sequence, 1);
    assert_int_equal(events[1].node, 0);
    assert_int_equal(events[1].rank, -1);
    assert_int_equal(events[1].attempt, 1);
    assert_int_equal(events[1].time_ms, 5);
    assert_string_equal(events[1].json, "{\"event\":\"x\"}");
    second = events[1].id;
    assert_good(
        t, dt_store_event_list(t->store, &events, &count, "aa", second, 0, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_int_equal(events[0].node, 1);
    assert_good(t, dt_store_event_list(t->store, &events, &count, "aa", 0, 2, &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_good(t, dt_store_event_list(t->store, &events, &count, "bb", 0, 0, &t->arena, &t->err));
    assert_int_equal(count, 0);
    assert_fails(t, dt_store_event_list(t->store, &events, &count, "zz", 0, 0, &t->arena, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

static void test_a_journal_number_is_stored_once_but_the_supervisors_own_are_not_numbered(
    void **state)
{
    test_store *t = *state;
    dt_store_event *events;
    int64_t count;

    test_store_run(t, "aa", "n");
    add(t, 0, 3, "ready");
    add(t, 0, 3, "ready again");
    add(t, -1, 0, "note");
    add(t, -1, 0, "note");
    assert_good(t, dt_store_event_list(t->store, &events, &count, "aa", 0, 0, &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_string_equal(events[0].kind, "ready");
}

static void test_checkpoints_are_newest_first_and_one_a_path(void **state)
{
    test_store *t = *state;
    dt_store_checkpoint checkpoint = {.attempt = 1,
                                      .step = 100,
                                      .bytes = (int64_t)5 << 32,
                                      .time_ms = 77,
                                      .path = "step-100",
                                      .digest = "d1",
                                      .valid_loss = NAN,
                                      .score = NAN,
                                      .seconds = 0.5};
    dt_store_checkpoint *list;
    int64_t count;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    checkpoint.step = 200;
    checkpoint.path = "step-200";
    checkpoint.valid_loss = 1.25;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    checkpoint.step = 100;
    checkpoint.path = "step-100";
    checkpoint.digest = "d2";
    checkpoint.score = -31.5;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));

    assert_good(t, dt_store_checkpoint_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_int_equal(list[0].step, 200);
    assert_int_equal(list[0].bytes, (int64_t)5 << 32);
    assert_int_equal(list[0].time_ms, 77);
    assert_true(list[0].valid_loss == 1.25 && list[0].seconds == 0.5);
    assert_true(list[0].score == 1.25); /* of checkpoints without a score */
    assert_true(list[1].score == -31.5);
    assert_int_equal(list[1].step, 100);
    assert_string_equal(list[1].digest, "d2");
    assert_string_equal(list[1].path, "step-100");
    assert_fails(t, dt_store_checkpoint_add(t->store, "zz", &checkpoint, &t->err), DT_ERR_NOT_FOUND,
                 "'zz'");
}

/* The folder was moved, and the run continued there. */
static void test_checkpoints_of_a_folder_that_was_moved_are_found(void **state)
{
    test_store *t = *state;
    dt_store_checkpoint checkpoint = {.attempt = 1, .step = 7};
    dt_store_checkpoint *list;
    char folder[128], gone[128];
    int64_t count;

    test_store_run(t, "aa", "n");
    snprintf(folder, sizeof(folder), "%s/runs/aa/checkpoints/step-7", t->folder);
    assert_good(t, dt_file_make_dirs(folder, 0700, &t->err));
    checkpoint.path = "/old/dtrun/runs/aa/checkpoints/step-7";
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    checkpoint.path = "/old/dtrun/runs/aa/checkpoints/step-5"; /* removed since */
    checkpoint.step = 5;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    checkpoint.path = "/else/where/step-7"; /* outside of the run's folder */
    checkpoint.step = 3;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    assert_good(t, dt_store_checkpoint_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_string_equal(list[0].path, folder);
    assert_string_equal(list[1].path, "/old/dtrun/runs/aa/checkpoints/step-5");
    assert_string_equal(list[2].path, "/else/where/step-7");

    checkpoint.path = folder; /* the same checkpoint, saved again */
    checkpoint.step = 7;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    snprintf(gone, sizeof(gone), "%s/runs/aa/checkpoints/step-5", t->folder);
    checkpoint.path = gone;
    checkpoint.step = 5;
    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &checkpoint, &t->err));
    assert_good(t, dt_store_checkpoint_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_string_equal(list[1].path, gone);
}

static void test_a_transaction_holds_all_or_nothing(void **state)
{
    test_store *t = *state;
    dt_store_event *events;
    int64_t count;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    add(t, 0, 0, "started");
    /* if a nested change fails, only that change is rolled back */
    assert_fails(t, dt_store_metric_add(t->store, "aa", 1, 1, "", 1, 1, &t->err), DT_ERR_IO,
                 "CHECK");
    assert_good(t, dt_store_metric_add(t->store, "aa", 1, 1, "loss", 1, 1, &t->err));
    /* Nothing of other changes. */
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM events"), 0);
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM events"), 1);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), 1);

    assert_good(t, dt_store_begin(t->store, &t->err));
    add(t, 0, 1, "ready");
    dt_store_rollback(t->store);
    dt_store_rollback(t->store); /* has no effect */
    assert_good(t, dt_store_event_list(t->store, &events, &count, "aa", 0, 0, &t->arena, &t->err));
    assert_int_equal(count, 1);
}

static void add_text(test_store *t, int64_t attempt, const char *kind, const char *json)
{
    dt_store_event event = {
        .attempt = attempt, .node = -1, .rank = 0, .time_ms = 1, .kind = kind, .json = json};

    assert_good(t, dt_store_event_add(t->store, "aa", &event, &t->err));
}

static void test_the_newest_sample_of_each_prompt_and_step_counts(void **state)
{
    test_store *t = *state;
    dt_store_sample *list;
    int64_t count, attempt, *steps;

    test_store_run(t, "aa", "n");
    add_text(t, 1, "samples",
             "{\"step\":20,\"samples\":[{\"index\":1,\"prompt\":\"b\",\"text\":\"x\",\"tokens\":3,"
             "\"ended\":\"tokens\"}]}");
    add_text(t, 1, "samples",
             "{\"step\":20,\"samples\":[{\"index\":0,\"prompt\":\"a\",\"text\":\"y\",\"tokens\":2,"
             "\"ended\":\"end_of_text\"},7,{\"index\":2}]}");
    add_text(t, 1, "samples",
             "{\"step\":10,\"samples\":[{\"index\":0,\"prompt\":\"a\",\"text\":\"z\"}]}");
    add_text(
        t, 1, "samples",
        "{\"step\":20,\"samples\":[{\"index\":1,\"prompt\":\"b\",\"text\":\"w\"}]}"); /* again */
    add_text(t, 1, "samples", "{\"step\":30,\"samples\":7}");
    add_text(t, 1, "samples", "{");
    assert_good(t, dt_store_sample_list(t->store, &list, &count, "aa", DT_STORE_ALL_STEPS,
                                        &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_int_equal(list[0].step, 10);
    assert_string_equal(list[1].text, "y");
    assert_string_equal(list[1].ended, "end_of_text");
    assert_int_equal(list[2].place, 1);
    assert_string_equal(list[2].text, "w");
    assert_good(t, dt_store_sample_list(t->store, &list, &count, "aa", 10, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].text, "z");

    /* a resume from step 10 undoes what came after it */
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_FAILED, 1, "x", 5, &t->err));
    assert_good(t, dt_store_attempt_add(t->store, "aa", 10, 100, "{}", "h", 6, &attempt, &t->err));
    assert_good(t, dt_store_sample_steps(t->store, &steps, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_int_equal(steps[0], 10);
}

static void test_the_newest_confusion_of_each_step_counts(void **state)
{
    test_store *t = *state;
    dt_store_confusion *list;
    int64_t count, *steps;

    test_store_run(t, "aa", "n");
    add_text(t, 1, "confusion", "{\"step\":20,\"counts\":[[1,2],[3,4]]}");
    add_text(t, 1, "confusion", "{\"step\":10,\"counts\":[[5]]}");
    add_text(t, 1, "confusion", "{\"step\":20,\"counts\":[[1,2],[3,5]]}");
    add_text(t, 1, "confusion", "{\"step\":30,\"counts\":{}}");
    assert_good(t, dt_store_confusion_list(t->store, &list, &count, "aa", DT_STORE_ALL_STEPS,
                                           &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_string_equal(list[1].counts, "[[1,2],[3,5]]");
    assert_good(t, dt_store_confusion_list(t->store, &list, &count, "aa", 10, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_good(t, dt_store_confusion_steps(t->store, &steps, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
}

static void add_evaluation(test_store *t, int64_t attempt, int64_t step, const char *tasks)
{
    assert_good(t, dt_store_evaluation_add(t->store, "aa", attempt, step, tasks, &t->err));
}

static void test_the_newest_evaluation_of_each_task_and_step_counts(void **state)
{
    test_store *t = *state;
    dt_store_evaluation *list;
    int64_t count, attempt;

    test_store_run(t, "aa", "n");
    test_store_run(t, "bb", "n");
    add_evaluation(t, 1, 20, "{\"b\":{\"rows\":1},\"a\":{\"rows\":2}}");
    add_evaluation(t, 1, 10, "{\"a\":{\"rows\":3}}");
    add_evaluation(t, 1, 20, "{\"b\":{\"rows\":4}}"); /* again, by a person or after a crash */
    add_evaluation(t, 1, 30, "{\"a\":{\"rows\":5}}");
    add_evaluation(t, 1, 40, "{\"a\":7}"); /* not of this program */
    test_store_run_sql(
        t, "INSERT INTO events (run, attempt, node, sequence, rank, time_ms, kind, json)"
           " SELECT run, 1, -1, 0, -1, 1, 'evaluation', '{' FROM runs WHERE id = 'aa'");
    assert_good(t, dt_store_evaluation_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 4);
    assert_int_equal(list[0].step, 10);
    assert_int_equal(list[1].step, 20);
    assert_string_equal(list[1].task, "a");
    assert_string_equal(list[2].result, "{\"rows\":4}");
    assert_int_equal(list[3].step, 30);
    assert_good(t, dt_store_evaluation_list(t->store, &list, &count, "bb", &t->arena, &t->err));
    assert_int_equal(count, 0);

    /* a resume from step 20 undoes what came after it */
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_FAILED, 1, "x", 5, &t->err));
    assert_good(t, dt_store_attempt_add(t->store, "aa", 20, 100, "{}", "h", 6, &attempt, &t->err));
    assert_good(t, dt_store_evaluation_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_int_equal(list[2].step, 20);
    add_evaluation(t, attempt, 30, "{\"a\":{\"rows\":6}}");
    assert_good(t, dt_store_evaluation_list(t->store, &list, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 4);
    assert_string_equal(list[3].result, "{\"rows\":6}");
    assert_int_equal(list[3].attempt, 2);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

static void label(test_store *t, dt_labels labels, int64_t now_ms)
{
    labels.now_ms = now_ms;
    assert_good(t, dt_store_run_label(t->store, "aa", &labels, &t->err));
}

static void test_each_version_of_a_note_is_kept_with_its_time(void **state)
{
    test_store *t = *state;
    char empty[DT_NOTE_VERSION_BYTES];
    dt_store_event *events;
    dt_note *notes;
    int64_t count;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_note_list(t->store, &notes, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 0);
    label(t, (dt_labels){.note = "of the launch"}, 0); /* without an event */
    assert_good(t, dt_store_note_list(t->store, &notes, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_false(notes[0].recorded);
    label(t, (dt_labels){.note = "one \"two\"\n# three"}, 7000);
    label(t, (dt_labels){.note = "one \"two\"\n# three"}, 8000); /* the same again: no version */
    label(t, (dt_labels){.note = "by an older program"}, 0);
    label(t, (dt_labels){.note = "", .name = "m", .tags = "x y"}, 9000);
    assert_good(t, dt_store_note_list(t->store, &notes, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 4);
    assert_string_equal(notes[0].text, "of the launch");
    assert_string_equal(notes[1].text, "one \"two\"\n# three");
    assert_int_equal(notes[1].time_ms, 7000);
    assert_string_equal(notes[2].text, "by an older program");
    assert_string_equal(notes[3].text, "");
    assert_int_equal(notes[3].time_ms, 9000);
    dt_note_version(empty, "");
    assert_string_equal(notes[3].version, empty);
    assert_string_not_equal(notes[0].version, notes[1].version);
    assert_good(t, dt_store_event_list_of_kind(t->store, &events, &count, "aa", "renamed",
                                               &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_string_equal(events[0].json, "{\"event\":\"renamed\",\"name\":\"m\",\"was\":\"n\"}");
    assert_good(t, dt_store_event_list_of_kind(t->store, &events, &count, "aa", "tagged", &t->arena,
                                               &t->err));
    assert_int_equal(count, 1);
    assert_fails(t, dt_store_note_list(t->store, &notes, &count, "zz", &t->arena, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_events_are_read_from_a_cursor),
        WITH_STORE(test_a_journal_number_is_stored_once_but_the_supervisors_own_are_not_numbered),
        WITH_STORE(test_checkpoints_are_newest_first_and_one_a_path),
        WITH_STORE(test_checkpoints_of_a_folder_that_was_moved_are_found),
        WITH_STORE(test_a_transaction_holds_all_or_nothing),
        WITH_STORE(test_each_version_of_a_note_is_kept_with_its_time),
        WITH_STORE(test_the_newest_evaluation_of_each_task_and_step_counts),
        WITH_STORE(test_the_newest_sample_of_each_prompt_and_step_counts),
        WITH_STORE(test_the_newest_confusion_of_each_step_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
