#include "runner/relay/relay.h"

#include <stdlib.h>
#include <string.h>

#include "web/command.h"

#define HEAD_BYTES_MOST 16 /* longest header, "o 16384\n", with room to spare */
#define EXIT_CODE_MOST  255

void dt_frames_init(dt_frames *out,
                    dt_status (*take)(void *, char, const char *, size_t, dt_error *),
                    void *context)
{
    *out = (dt_frames){.take = take, .context = context};
    dt_strbuf_init(&out->head);
}

void dt_frames_release(dt_frames *frames)
{
    dt_strbuf_release(&frames->head);
}

static dt_status refuse(dt_error *err)
{
    return DT_FAIL(err, DT_ERR_CORRUPT, "the server's answer is malformed");
}

/* Parses a frame's header, such as "o 12": the kind of frame, then its length or the exit code. */
static dt_status read_head(dt_frames *frames, dt_error *err)
{
    const char *text = frames->head.data;
    dt_status st = DT_OK;
    unsigned long number;
    char *end;

    if (strlen(text) != frames->head.length || frames->head.length < 3 || text[1] != ' ' ||
        text[2] < '0' || text[2] > '9')
        DT_TRY(refuse(err));
    number = strtoul(text + 2, &end, 10);
    if (*end != '\0')
        DT_TRY(refuse(err));
    frames->what = text[0];
    if (text[0] == 'x' && number <= EXIT_CODE_MOST) {
        frames->ended = true;
        frames->exit_code = (int)number;
        goto out;
    }
    if ((text[0] != 'o' && text[0] != 'e') || number > DT_WEB_COMMAND_FRAME_BYTES)
        DT_TRY(refuse(err));
    frames->left = number;
    if (number == 0)
        DT_TRY(frames->take(frames->context, frames->what, "", 0, err));
out:
    dt_strbuf_reset(&frames->head);
    return st;
}

dt_status dt_frames_add(dt_frames *frames, const char *bytes, size_t length, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t at = 0; at < length;) {
        size_t now = length - at < frames->left ? length - at : frames->left;

        if (frames->ended)
            DT_TRY(refuse(err));
        if (now > 0) {
            DT_TRY(frames->take(frames->context, frames->what, bytes + at, now, err));
            frames->left -= now;
            at += now;
        } else if (bytes[at++] == '\n') {
            DT_TRY(read_head(frames, err));
        } else {
            dt_strbuf_add_char(&frames->head, bytes[at - 1]);
            if (frames->head.length > HEAD_BYTES_MOST)
                DT_TRY(refuse(err));
        }
    }
out:
    return st;
}
