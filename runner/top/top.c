/* top: shows a live table of all runs, and one of them in the whole terminal, and starts missing
 * supervisors meanwhile. */
#include "runner/top/top.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "runner/cli/report.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/term/screen.h"
#include "runner/view/runs/runs.h"

/* keeper: starts missing supervisors of active runs while `dtrun top` is open.
 *
 * Runs `dtrun supervise --all-active` as a separate process: a supervisor can take half a minute to respond, and
 * the view must not wait for it.
 */

typedef struct dt_keeper {
    dt_child child;
    double next_seconds; /* monotonic time of the next start; 0 at first */
} dt_keeper;

#define GAP_SECONDS 10.0

/* Starts the process, at most every ten seconds. Failures are retried. */
static void keeper_look(dt_keeper *keeper)
{
    static const char *const argv[] = {"dtrun", "supervise", "--all-active", NULL};
    double now = dt_clock_monotonic_seconds();
    int code;

    if ((keeper->child.pid > 0 && !dt_child_has_ended(&keeper->child, &code)) ||
        now < keeper->next_seconds)
        return;
    keeper->next_seconds = now + GAP_SECONDS;
    (void)dt_child_start(&keeper->child, /* its output stays off the screen */
                         &(dt_child_spec){.argv = argv, .program = "/proc/self/exe"}, NULL);
}

#define LOOK_SECONDS 1.0
#define LOOK_SHARE \
    0.1 /* most of the time that is spent on reading: with many runs it reads less often */

enum { TEXT_SIZE = 256, LIST_BESIDE = 4 }; /* rows around the list */

typedef struct top {
    dt_store *store;
    dt_screen screen;
    dt_term term;
    dt_arena arenas[2]; /* of the shown data and of the next data */
    int shown;          /* index of the arena of the shown data */
    dt_top_wish wish;
    dt_top_rows all, rows; /* as read; as shown */
    dt_top_detail detail;
    char metric[TEXT_SIZE], selected[TEXT_SIZE], open[TEXT_SIZE]; /* ids; open "": the list */
    char filter[TEXT_SIZE];
    bool types; /* the user types the filter */
    char marked[DT_TOP_OTHERS_MOST]
               [TEXT_SIZE]; /* ids of the runs whose curves are drawn with the open one */
    size_t marked_count;
    int64_t at, first; /* index of the selected row; first row shown */
    dt_keeper keeper;
    double looked, pause; /* when it last read, and the seconds until it reads again */
    bool stale;           /* the user asked for other data than was read */
    char problem[TEXT_SIZE];
} top;

static void set_text(char *text, const char *value)
{
    snprintf(text, TEXT_SIZE, "%.*s", TEXT_SIZE - 1, value);
}

/* --- reading */

static dt_status renew(top *t, dt_error *err)
{
    dt_store *fresh;
    dt_status st = DT_OK;

    if (t->store != NULL && dt_store_is_current(t->store))
        return DT_OK;
    DT_TRY(dt_store_open_to_read(&fresh, NULL, err));
    dt_store_close(t->store);
    t->store = fresh;
out:
    return st;
}

/* Returns the index of a mark; marked_count: the run is not marked. */
static size_t mark_of(const top *t, const char *run)
{
    size_t at = 0;

    while (at < t->marked_count && strcmp(t->marked[at], run) != 0)
        at++;
    return at;
}

/* Selects and sorts the rows to show, and keeps the selected run selected. */
static void show_rows(top *t)
{
    int64_t most;

    dt_top_rows_select(&t->rows, &t->all, &t->wish, &t->arenas[t->shown]);
    most = t->rows.count - 1;
    for (int64_t i = 0; i < t->rows.count; i++)
        t->rows.items[i].marked = mark_of(t, t->rows.items[i].run->id) < t->marked_count;
    for (int64_t i = 0; i < t->rows.count; i++)
        if (strcmp(t->rows.items[i].run->id, t->selected) == 0)
            t->at = i;
    t->at = t->at > most ? most : t->at;
    t->at = t->at < 0 ? 0 : t->at;
    if (most >= 0)
        set_text(t->selected, t->rows.items[t->at].run->id);
}

static dt_status read_all(top *t, dt_error *err)
{
    dt_arena *arena = &t->arenas[!t->shown];
    const char *others[DT_TOP_OTHERS_MOST];
    int64_t now_ms = dt_clock_wall_ms();
    dt_top_detail detail;
    dt_status st = DT_OK;
    dt_top_rows rows;

    dt_arena_reset(arena);
    DT_TRY(renew(t, err));
    if (t->open[0] != '\0') {
        for (size_t i = 0; i < t->marked_count; i++)
            others[i] = t->marked[i];
        DT_TRY(dt_top_detail_read(&detail, t->store, t->open, others, t->marked_count, t->metric,
                                  &t->term, now_ms, arena, err));
        t->detail = detail;
        t->all = t->rows = (dt_top_rows){0};
        t->shown = !t->shown;
    } else {
        DT_TRY(dt_top_rows_read(&rows, t->store, &t->wish, now_ms, arena, err));
        t->all = rows;
        t->shown = !t->shown;
        show_rows(t);
    }
out:
    return st;
}

static bool any_active(const top *t)
{
    return t->rows.running + t->rows.waiting > 0 ||
           (t->open[0] != '\0' && !dt_run_state_is_terminal(t->detail.run.state));
}

static void look(top *t)
{
    double now = dt_clock_monotonic_seconds();
    dt_error err = DT_ERROR_INIT;

    if (!t->stale && now - t->looked < t->pause)
        return;
    t->problem[0] = '\0';
    if (read_all(t, &err) != DT_OK) {
        set_text(t->problem, err.message);
        if (t->open[0] != '\0' && t->detail.run.id == NULL) /* it never existed: back to the list */
            t->open[0] = '\0';
    }
    t->stale = false;
    t->looked = dt_clock_monotonic_seconds();
    t->pause = (t->looked - now) / LOOK_SHARE;
    t->pause = t->pause > LOOK_SECONDS ? t->pause : LOOK_SECONDS;
    if (any_active(t))
        keeper_look(&t->keeper);
}

/* --- drawing */

static void add_foot(dt_strbuf *text, const top *t, int row, const char *keys)
{
    for (; row < t->term.rows - 1; row++)
        dt_strbuf_add_char(text, '\n');
    if (t->problem[0] != '\0')
        dt_term_add(text, &t->term, DT_STYLE_BAD, "%.*s", (int)strcspn(t->problem, "\n"),
                    t->problem);
    else if (t->types)
        dt_term_add(text, &t->term, DT_STYLE_BOLD, "%s", keys);
    else
        dt_term_add(text, &t->term, DT_STYLE_DIM, "%s", keys);
}

static int lines_of(const dt_strbuf *text)
{
    int count = 0;

    for (const char *at = text->data; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

static int64_t room_for_rows(const top *t)
{
    return t->term.rows > LIST_BESIDE ? t->term.rows - LIST_BESIDE : 1;
}

static void add_list(dt_strbuf *text, top *t)
{
    int64_t room = room_for_rows(t);
    char keys[2 * TEXT_SIZE];

    if (t->at < t->first)
        t->first = t->at;
    if (t->at >= t->first + room)
        t->first = t->at - room + 1;
    dt_term_add(text, &t->term, DT_STYLE_BOLD, "dtrun top  ");
    dt_top_rows_count(text, &t->term, &t->rows);
    if (t->filter[0] != '\0')
        dt_term_add(text, &t->term, DT_STYLE_WARN, "  %lld of %lld have '%s'",
                    (long long)t->rows.count, (long long)t->all.count, t->filter);
    dt_strbuf_add_str(text, "\n\n");
    if (t->rows.count > 0)
        dt_top_rows_add(text, &t->term, &t->rows, t->first, room, t->at, dt_clock_wall_ms(),
                        &t->arenas[t->shown]);
    else
        dt_term_add(text, &t->term, DT_STYLE_DIM, "%s%s\n",
                    t->all.count > 0 ? "no run has all of these words in its name, id, tags, group "
                                       "or state"
                                     : "no active runs, and none ended recently",
                    t->wish.all ? "" : " (a: all runs)");
    if (t->types)
        snprintf(keys, sizeof(keys), "/%s_   Enter keep  Esc clear", t->filter);
    else
        snprintf(keys, sizeof(keys),
                 "q quit  / search  Enter open  Space mark  s sort: %s%s  m metric  a %s",
                 dt_top_sort_names[t->wish.sort], t->term.columns < 95 ? "" : "  r reverse",
                 t->wish.all ? "active only" : "all");
    add_foot(text, t, lines_of(text), keys);
}

static void add_detail(dt_strbuf *text, top *t)
{
    dt_top_detail_add(text, &t->term, &t->detail, t->term.rows - 1, &t->arenas[t->shown]);
    add_foot(text, t, lines_of(text),
             t->detail.others_count > 0 ? "Esc back  q quit  left right metric  u this run alone"
                                        : "Esc back  q quit  left right metric");
}

static void draw(top *t)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (t->open[0] != '\0')
        add_detail(&text, t);
    else
        add_list(&text, t);
    dt_screen_draw(&t->screen, text.data);
    dt_strbuf_release(&text);
}

/* --- keys */

/* Switches to the metric `by` places further in the list of the current run. */
static void change_metric(top *t, int by)
{
    const char *run = t->open[0] != '\0' ? t->open : t->selected, **names;
    int64_t count, at = 0;

    if (run[0] == '\0' ||
        dt_store_metric_names(t->store, &names, &count, run, &t->arenas[t->shown], NULL) != DT_OK)
        return;
    while (at < count && strcmp(names[at], t->metric) != 0)
        at++;
    if (count > 0)
        set_text(t->metric, names[at == count ? 0 : (at + count + by) % count]);
    t->stale = true;
}

static void move(top *t, int64_t by)
{
    t->at += by;
    t->at = t->at >= t->rows.count ? t->rows.count - 1 : t->at;
    t->at = t->at < 0 ? 0 : t->at;
    if (t->rows.count > 0)
        set_text(t->selected, t->rows.items[t->at].run->id);
}

static void open_run(top *t)
{
    if (t->rows.count == 0)
        return;
    set_text(t->open, t->selected);
    t->detail = (dt_top_detail){0};
    t->stale = true;
    look(t);
}

static void mark(top *t)
{
    size_t at = mark_of(t, t->selected);

    if (t->rows.count == 0)
        return;
    if (at < t->marked_count) {
        t->marked_count--;
        memmove(t->marked[at], t->marked[at + 1], (t->marked_count - at) * sizeof(t->marked[0]));
    } else if (t->marked_count < DT_TOP_OTHERS_MOST) {
        set_text(t->marked[t->marked_count++], t->selected);
    } else {
        snprintf(t->problem, sizeof(t->problem), "at most %d runs are marked", DT_TOP_OTHERS_MOST);
    }
    show_rows(t);
}

static void unmark_all(top *t)
{
    t->marked_count = 0;
    show_rows(t);
}

static void close_run(top *t)
{
    set_text(t->selected, t->open);
    t->open[0] = '\0';
    t->stale = true;
}

static void press_in_list(top *t, int key)
{
    switch (key) {
    case 'j':
    case DT_KEY_DOWN:
        return move(t, 1);
    case 'k':
    case DT_KEY_UP:
        return move(t, -1);
    case DT_KEY_PAGE_DOWN:
        return move(t, room_for_rows(t));
    case DT_KEY_PAGE_UP:
        return move(t, -room_for_rows(t));
    case 'g':
    case DT_KEY_HOME:
        return move(t, -t->rows.count);
    case 'G':
    case DT_KEY_END:
        return move(t, t->rows.count);
    case DT_KEY_ENTER:
        return open_run(t);
    case 's':
        t->wish.sort = (t->wish.sort + 1) % DT_TOP_SORTS;
        return show_rows(t);
    case 'S':
        t->wish.sort = (t->wish.sort + DT_TOP_SORTS - 1) % DT_TOP_SORTS;
        return show_rows(t);
    case 'r':
        t->wish.reverse = !t->wish.reverse;
        return show_rows(t);
    case ' ':
        return mark(t);
    case 'u':
        return unmark_all(t);
    case '/':
        t->types = true;
        return;
    case DT_KEY_ESCAPE: /* else it quits */
        if (t->filter[0] == '\0')
            return unmark_all(t);
        t->filter[0] = '\0';
        return show_rows(t);
    case 'a':
        t->wish.all = !t->wish.all;
        t->stale = true;
        return;
    default:
        return;
    }
}

/* Takes a key while the filter is typed. Keys that move still do. */
static void press_in_filter(top *t, int key)
{
    size_t length = strlen(t->filter);

    if (key == DT_KEY_ENTER || key == DT_KEY_ESCAPE)
        t->types = false;
    if (key == DT_KEY_ESCAPE || key == 0x15) { /* Ctrl-U */
        t->filter[0] = '\0';
    } else if ((key == 0x7f || key == 0x08) && length == 0) {
        t->types = false; /* as in vi and less */
    } else if (key == 0x7f || key == 0x08) {
        while (length > 0 && ((unsigned char)t->filter[--length] & 0xc0) == 0x80)
            ; /* the bytes of one character */
        t->filter[length] = '\0';
    } else if (key >= ' ' && key <= 0xff && length + 1 < sizeof(t->filter)) {
        t->filter[length] = (char)key;
        t->filter[length + 1] = '\0';
    } else if (key == DT_KEY_UP || key == DT_KEY_DOWN || key == DT_KEY_PAGE_UP ||
               key == DT_KEY_PAGE_DOWN) {
        press_in_list(t, key);
    }
    if (key != DT_KEY_NONE)
        show_rows(t);
}

/* Returns false if the user quits. */
static bool press(top *t, int key)
{
    bool in_list = t->open[0] == '\0';
    bool clears = t->filter[0] != '\0' || t->marked_count > 0;

    if (key == DT_KEY_INTERRUPT)
        return false;
    if (t->types) {
        press_in_filter(t, key);
        return true;
    }
    if (key == 'q' || (key == DT_KEY_ESCAPE && in_list && !clears))
        return false;
    if (key == 'm' || key == '\t' || key == DT_KEY_RIGHT)
        change_metric(t, 1);
    else if (key == 'M' || key == DT_KEY_LEFT)
        change_metric(t, -1);
    else if (in_list)
        press_in_list(t, key);
    else if (key == DT_KEY_ESCAPE || key == DT_KEY_ENTER || key == 0x7f)
        close_run(t);
    else if (key == 'u') {
        t->marked_count = 0;
        t->stale = true;
    }
    return true;
}

static dt_status watch(top *t, dt_call *call, dt_error *err)
{
    int key = DT_KEY_NONE, columns = 0, rows = 0;
    dt_status st;

    st = dt_screen_open(&t->screen, &t->term, err);
    while (st == DT_OK && press(t, key)) {
        t->stale = t->stale || columns != t->term.columns || rows != t->term.rows;
        columns = t->term.columns;
        rows = t->term.rows;
        look(t);
        draw(t);
        key = dt_screen_key(&t->screen, t->looked + t->pause - dt_clock_monotonic_seconds());
    }
    dt_screen_close(&t->screen);
    if (key == DT_KEY_INTERRUPT)
        call->exit_code = DT_EXIT_INTERRUPTED;
    return st;
}

/* --- without a terminal */

static dt_status print_json(const top *t, dt_error *err)
{
    json_t *object = dt_report_object(), *runs = json_array();

    for (int64_t i = 0; i < t->rows.count; i++) {
        json_t *run = dt_runs_to_json(t->rows.items[i].run);

        json_object_del(run, "version");
        dt_runs_add_activity(run, t->rows.items[i].run, &t->rows.items[i].timing.activity);
        json_object_set_new(run, "eta_seconds",
                            dt_json_number(t->rows.items[i].timing.eta_seconds));
        json_array_append_new(runs, run);
    }
    json_object_set_new(object, "runs", runs);
    return dt_report_json(object, err);
}

static dt_status print(top *t, const dt_call *call, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    if (call->json)
        return print_json(t, err);
    if (t->rows.count == 0)
        dt_report_note(call, "no active runs, and none ended in the last ten minutes");
    dt_strbuf_init(&text);
    if (t->rows.count > 0)
        dt_top_rows_add(&text, &t->term, &t->rows, 0, t->rows.count, -1, dt_clock_wall_ms(),
                        &t->arenas[t->shown]);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_top(const char *open, const dt_top_wish *wish, dt_call *call, dt_error *err)
{
    top t = {.wish = *wish};
    dt_status st = DT_OK;
    dt_run run;

    dt_arena_init(&t.arenas[0], 0);
    dt_arena_init(&t.arenas[1], 0);
    dt_term_init(&t.term, STDOUT_FILENO);
    set_text(t.metric, wish->metric);
    t.wish.metric = t.metric;
    t.wish.filter = t.filter;
    DT_TRY(renew(&t, err));
    dt_restore_runs(t.store);
    if (open != NULL) {
        DT_TRY(dt_store_run_find(t.store, &run, open, t.arenas, err));
        set_text(t.selected, run.id);
    }
    if (!call->json && dt_screen_possible(&t.term)) {
        set_text(t.open, t.selected);
        DT_TRY(watch(&t, call, err));
    } else {
        DT_TRY(read_all(&t, err));
        DT_TRY(print(&t, call, err));
    }
out:
    dt_store_close(t.store);
    dt_arena_release(&t.arenas[0]);
    dt_arena_release(&t.arenas[1]);
    return st;
}
