/* dtrun completion: prints the completion script of a shell. `dtrun complete`, which that script calls,
 * prints the candidates for a word (not for people). */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/complete.h"
#include "runner/cli/report.h"

extern const char dt_embedded_completion_bash[], dt_embedded_completion_zsh[],
    dt_embedded_completion_fish[];

static dt_status print(const char *bytes, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    json_t *object;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, bytes);
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "text", json_string(text.data));
        st = dt_report_json(object, err);
    } else {
        st = dt_report_text(&text, err);
    }
    dt_strbuf_release(&text);
    return st;
}

static dt_status completion(dt_call *call, dt_error *err)
{
    const char *shell = call->args->operands[0];

    if (strcmp(shell, "bash") == 0)
        return print(dt_embedded_completion_bash, call, err);
    if (strcmp(shell, "zsh") == 0)
        return print(dt_embedded_completion_zsh, call, err);
    if (strcmp(shell, "fish") == 0)
        return print(dt_embedded_completion_fish, call, err);
    return DT_FAIL(err, DT_ERR_USAGE, "unknown shell '%s' (one of bash, zsh, fish)", shell);
}

static dt_status complete(dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_complete(&text, call->args->operands, call->args->operands_count, call->arena, err));
    DT_TRY(print(text.data, call, err));
out:
    dt_strbuf_release(&text);
    return st;
}

const dt_command dt_command_completion = {
    .name = "completion",
    .summary = "print a shell completion script",
    .operands = "SHELL",
    .takes = DT_OPERAND_SHELL,
    .operands_min = 1,
    .operands_max = 1,
    .notes = "SHELL is bash, zsh or fish. An installed dtrun needs no setup; otherwise add:\n"
             "  source <(dtrun completion bash)      in ~/.bashrc\n"
             "  source <(dtrun completion zsh)       in ~/.zshrc, after compinit\n"
             "  dtrun completion fish | source       in ~/.config/fish/config.fish\n",
    .run = completion,
};

const dt_command dt_command_complete = {
    .name = "complete",
    .summary = "print the candidates for the last of these words",
    .operands = "[WORD...]",
    .operands_max = -1,
    .hidden = true,
    .run = complete,
};
