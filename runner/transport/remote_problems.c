/* remote_problems: reads what the transport's program and the command wrote to stderr. */
#include "runner/transport/remote_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

void dt_remote_read_problems(const dt_remote *remote, char *out, size_t size)
{
    off_t length = lseek(remote->problems, 0, SEEK_END);
    off_t from = length > (off_t)size - 1 ? length - ((off_t)size - 1) : 0;
    ssize_t got = pread(remote->problems, out, size - 1, from);

    out[got > 0 ? got : 0] = '\0';
    for (char *p = out; p < out + (got > 0 ? got : 0); p++)
        if (*p == '\0')
            *p = ' ';
}

const char *dt_remote_last_words(const dt_remote *remote, char *text)
{
    bool (*own)(const char *line) = remote->transport->is_transport_line;
    size_t length = strlen(text);
    char *line;

    for (;;) {
        while (length > 0 && (unsigned char)text[length - 1] <= ' ')
            text[--length] = '\0';
        line = strrchr(text, '\n');
        if (line == NULL || own == NULL || !own(line + 1))
            break;
        length = (size_t)(line - text);
        text[length] = '\0';
    }
    line = line != NULL ? line + 1 : text;
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return line;
}

const char *dt_remote_reason(char out[DT_REMOTE_REASON_BYTES], const dt_remote *remote, char *text,
                             int code)
{
    const char *line = dt_remote_last_words(remote, text);
    char end[DT_EXIT_WORDS_BYTES];

    if (line[strspn(line, " ")] != '\0')
        snprintf(out, DT_REMOTE_REASON_BYTES, "%s", line);
    else
        snprintf(out, DT_REMOTE_REASON_BYTES, "the command %s, without a message",
                 dt_exit_words(end, code));
    return out;
}

void dt_remote_print_problems(const dt_remote *remote, int fd)
{
    char complaint[DT_REMOTE_COMPLAINT_BYTES];
    const char *line = complaint, *end;

    dt_remote_read_problems(remote, complaint, sizeof(complaint));
    for (; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n' ? 1 : 0;
        if (remote->transport->is_transport_line == NULL ||
            !remote->transport->is_transport_line(line))
            (void)dt_file_write_all(fd, line, (size_t)(end - line), NULL);
    }
}
