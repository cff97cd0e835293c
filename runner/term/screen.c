/* screen: redraws a block in the last lines of a terminal, or takes over the whole terminal and reads keys. */
#include "runner/term/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"

#define HIDE_CURSOR "\x1b[?25l"
#define SHOW_CURSOR "\x1b[?25h"
#define CLEAR_LINE  "\x1b[K"
#define CLEAR_BELOW "\x1b[J"

void dt_live_open(dt_live *live, dt_term *term)
{
    live->term = term;
    live->lines = 0;
    live->hidden = false;
    dt_strbuf_init(&live->output);
}

/* Adds the lines of `text`. Lines are clipped one column before the right edge, because some
 * terminals wrap after the last column; with `whole` they are not clipped. Returns the number of
 * lines. */
static int add_lines(dt_live *live, const char *text, bool whole)
{
    size_t width = (size_t)(live->term->columns > 1 ? live->term->columns - 1 : 1);
    dt_strbuf line;
    int count = 0;

    dt_strbuf_init(&line);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        dt_strbuf_reset(&line);
        dt_strbuf_add(&line, text, length);
        dt_term_add_clipped(&live->output, live->term, line.data,
                            whole ? dt_term_width(line.data) : width);
        dt_strbuf_add_str(&live->output, CLEAR_LINE "\n");
        text += length + (text[length] == '\n');
        count++;
    }
    dt_strbuf_release(&line);
    return count;
}

/* Write errors are ignored: the run continues without a terminal. */
static void flush(dt_live *live)
{
    (void)dt_file_write_all(live->term->fd, live->output.data, live->output.length, NULL);
    dt_strbuf_reset(&live->output);
}

static void go_to_top(dt_live *live)
{
    if (live->lines > 0)
        dt_strbuf_add_fmt(&live->output, "\r\x1b[%dA", live->lines);
    live->lines = 0;
}

void dt_live_draw(dt_live *live, const char *above, const char *block)
{
    dt_term_measure(live->term);
    if (!live->hidden)
        dt_strbuf_add_str(&live->output, HIDE_CURSOR);
    live->hidden = true;
    go_to_top(live);
    add_lines(live, above, true);
    live->lines = add_lines(live, block, false);
    dt_strbuf_add_str(&live->output, CLEAR_BELOW);
    flush(live);
}

void dt_live_close(dt_live *live)
{
    if (live->hidden) {
        go_to_top(live);
        dt_strbuf_add_str(&live->output, "\r" CLEAR_BELOW SHOW_CURSOR);
        flush(live);
    }
    dt_strbuf_release(&live->output);
}

/* Enter: alternate screen, hidden cursor, no wrapping. Leave: undo all of it and reset styles. */
#define ENTER       "\x1b[?1049h\x1b[?25l\x1b[?7l"
#define LEAVE       "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
#define TO_TOP      "\x1b[H"
#define CLEAR_LINE  "\x1b[K"
#define CLEAR_BELOW "\x1b[J"

#define ESCAPE_MS 50 /* timeout for the rest of an escape sequence */

/* State for signal handlers: the terminal, and a pipe that wakes dt_screen_key. */
static struct {
    int fd, wake[2];
    volatile sig_atomic_t entered, ended, stopped, continued;
    struct termios before;
} held = {.fd = -1, .wake = {-1, -1}};

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static const int crashing[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static const int others[] = {SIGTSTP, SIGCONT, SIGWINCH};
enum { ENDING = 3, CRASHING = 5, OTHERS = 3, SIGNALS = ENDING + CRASHING + OTHERS };
static struct sigaction actions_before[SIGNALS];

/* --- the terminal: async-signal-safe calls only */

static void put(const char *text)
{
    ssize_t written = write(held.fd, text, strlen(text));

    (void)written; /* ignore a terminal that is gone */
}

static void enter(void)
{
    struct termios raw = held.before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)IXON;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put(ENTER);
    held.entered = 1;
}

static void leave(void)
{
    if (!held.entered)
        return;
    held.entered = 0;
    put(LEAVE);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &held.before);
}

/* --- signals */

static void note_signal(int number)
{
    int error = errno;

    if (number == SIGTSTP)
        held.stopped = 1;
    else if (number == SIGCONT)
        held.continued = 1;
    else if (number != SIGWINCH)
        held.ended = 1;
    if (write(held.wake[1], "", 1) < 0)
        errno = error; /* the pipe is full: dt_screen_key wakes anyway */
    errno = error;
}

static void restore_action(int at, int number)
{
    (void)sigaction(number, &actions_before[at], NULL);
}

static void crash(int number)
{
    leave();
    for (int i = 0; i < CRASHING; i++)
        restore_action(i, crashing[i]);
    (void)raise(number);
}

static void set_actions(int *at, const int *numbers, int count, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < count; i++, (*at)++)
        (void)sigaction(numbers[i], &action, &actions_before[*at]);
}

static void catch_signals(void)
{
    int at = 0;

    set_actions(&at, crashing, CRASHING, crash, SA_NODEFER);
    set_actions(&at, ending, ENDING, note_signal, SA_RESTART);
    set_actions(&at, others, OTHERS, note_signal, SA_RESTART);
}

static void restore_signals(void)
{
    for (int i = 0; i < SIGNALS; i++)
        restore_action(i, i < CRASHING            ? crashing[i]
                          : i < CRASHING + ENDING ? ending[i - CRASHING]
                                                  : others[i - CRASHING - ENDING]);
}

/* Suspends on Ctrl-Z. Raises SIGSTOP: SIGTSTP is ignored in a process group without a shell. */
static void stop_here(void)
{
    held.stopped = 0;
    leave();
    (void)raise(SIGSTOP);
    enter();
}

/* --- */

bool dt_screen_possible(const dt_term *term)
{
    return term->live && isatty(STDIN_FILENO);
}

dt_status dt_screen_open(dt_screen *screen, dt_term *term, dt_error *err)
{
    *screen = (dt_screen){.term = term};
    dt_strbuf_init(&screen->output);
    if (!dt_screen_possible(term) || tcgetattr(STDIN_FILENO, &held.before) != 0)
        return DT_FAIL(err, DT_ERR_IO, "this is not a terminal");
    if (pipe2(held.wake, O_CLOEXEC | O_NONBLOCK) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create a pipe: %s", strerror(errno));
    held.fd = term->fd;
    held.ended = held.stopped = held.continued = 0;
    catch_signals();
    enter();
    dt_term_measure(term);
    return DT_OK;
}

void dt_screen_close(dt_screen *screen)
{
    if (held.fd >= 0) {
        leave();
        restore_signals();
        close(held.wake[0]);
        close(held.wake[1]);
        held.fd = held.wake[0] = held.wake[1] = -1;
    }
    dt_strbuf_release(&screen->output);
}

void dt_screen_draw(dt_screen *screen, const char *text)
{
    size_t width = (size_t)(screen->term->columns > 0 ? screen->term->columns : 1);
    dt_strbuf line;
    int row;

    dt_strbuf_init(&line);
    dt_strbuf_reset(&screen->output);
    dt_strbuf_add_str(&screen->output, TO_TOP);
    for (row = 0; row < screen->term->rows && *text != '\0'; row++) {
        size_t length = strcspn(text, "\n");

        dt_strbuf_reset(&line);
        dt_strbuf_add(&line, text, length);
        if (row > 0)
            dt_strbuf_add_str(&screen->output, "\n");
        dt_strbuf_add_str(
            &screen->output,
            CLEAR_LINE); /* before the text: after it, it would clear the last column */
        dt_term_add_clipped(&screen->output, screen->term, line.data, width);
        text += length + (text[length] == '\n');
    }
    dt_strbuf_release(&line);
    if (row < screen->term->rows)
        dt_strbuf_add_str(&screen->output, "\n" CLEAR_BELOW);
    (void)dt_file_write_all(screen->term->fd, screen->output.data, screen->output.length, NULL);
}

/* --- keys */

/* Returns one byte of standard input, or -1 on timeout. */
static int next_byte(int milliseconds)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    unsigned char byte;

    if (poll(&input, 1, milliseconds) <= 0 || read(STDIN_FILENO, &byte, 1) != 1)
        return -1;
    return byte;
}

/* Reads the rest of an escape sequence: "[A", "OA", "[5~". Without one the key was Esc. */
static int escape_sequence(void)
{
    int byte = next_byte(ESCAPE_MS), number = 0;

    if (byte < 0 || (byte != '[' && byte != 'O'))
        return DT_KEY_ESCAPE;
    for (byte = next_byte(ESCAPE_MS); byte >= '0' && byte <= ';'; byte = next_byte(ESCAPE_MS))
        number = byte <= '9' && number < 100 ? number * 10 + byte - '0' : number;
    switch (byte) {
    case 'A':
        return DT_KEY_UP;
    case 'B':
        return DT_KEY_DOWN;
    case 'C':
        return DT_KEY_RIGHT;
    case 'D':
        return DT_KEY_LEFT;
    case 'H':
        return DT_KEY_HOME;
    case 'F':
        return DT_KEY_END;
    case '~':
        return number == 5                  ? DT_KEY_PAGE_UP
               : number == 6                ? DT_KEY_PAGE_DOWN
               : number == 1 || number == 7 ? DT_KEY_HOME
               : number == 4 || number == 8 ? DT_KEY_END
                                            : DT_KEY_NONE;
    default:
        return DT_KEY_NONE;
    }
}

static int read_key(void)
{
    unsigned char byte;
    ssize_t got = read(STDIN_FILENO, &byte, 1);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return DT_KEY_NONE;
    if (got != 1)
        return DT_KEY_INTERRUPT;
    if (byte == 0x1b)
        return escape_sequence();
    return byte == '\n' || byte == '\r' ? DT_KEY_ENTER : byte;
}

/* Handles signals. Returns DT_KEY_INTERRUPT if one asks to end, else DT_KEY_NONE. */
static int heed_signals(dt_screen *screen)
{
    char bytes[64];

    while (read(held.wake[0], bytes, sizeof(bytes)) > 0)
        ;
    if (held.ended)
        return DT_KEY_INTERRUPT;
    if (held.stopped) {
        stop_here();
    } else if (
        held.continued) { /* suspended from outside: undo the terminal settings of the shell */
        enter();
    }
    held.continued = 0;
    dt_term_measure(screen->term);
    return DT_KEY_NONE;
}

int dt_screen_key(dt_screen *screen, double seconds)
{
    struct pollfd from[2] = {{STDIN_FILENO, POLLIN, 0}, {held.wake[0], POLLIN, 0}};
    int ready = poll(from, 2, seconds > 0 ? (int)(seconds * 1000) : 0);

    if (ready < 0 || from[1].revents != 0)
        return heed_signals(screen);
    return ready > 0 ? read_key() : DT_KEY_NONE;
}
