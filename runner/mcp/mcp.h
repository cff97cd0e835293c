/* mcp: a server of the Model Context Protocol on stdin and stdout: programs call commands of dtrun as tools.
 *
 * Purpose    an assistant or a script lists, compares and launches runs without a shell
 * Messages   JSON-RPC 2.0, one a line, at most DT_MCP_LINE_MOST bytes
 * Revisions  2026-07-28, which has no session: each request names its revision in params._meta; 2025-11-25 and
 *            2025-06-18, which begin with `initialize`. A client may use both in one process
 * Tools      a command of dtrun each, run by a child process of the same program with --json; see tools.c
 * Writes     only with `writes`: tools that change runs are neither listed nor called otherwise
 * Source     https://modelcontextprotocol.io/specification/2026-07-28 and /2025-11-25
 */
#ifndef DT_RUNNER_MCP_MCP_H
#define DT_RUNNER_MCP_MCP_H

#include "base/json.h"
#include "base/memory.h"
#include "runner/cli/command.h"

#define DT_MCP_LINE_MOST   ((size_t)4 << 20)
#define DT_MCP_OUTPUT_MOST ((size_t)64 << 20) /* of a command; it is ended beyond */

/* --- tools: which commands are tools, their schemas, and the words of a call */

/* Which items of a long array stay. */
typedef enum dt_mcp_cut {
    DT_MCP_FIRST, /* the first ones */
    DT_MCP_LAST,  /* the last ones */
    DT_MCP_THIN   /* every nth, and the last of each series */
} dt_mcp_cut;

typedef struct dt_mcp_tool {
    const char *name, *title;
    const dt_command *command;
    const char *about;           /* what differs from the command; "" */
    const char *const *fixed;    /* words that each call has; ends with NULL */
    const char *const *left_out; /* options that the tool does not have; ends with NULL */
    bool needs_operand;          /* even if the command does not */
    bool writes, destroys;
    const char *array; /* the array of its answer that can be long; NULL: none */
    dt_mcp_cut cut;
    const char *less; /* arguments that make the answer shorter */
} dt_mcp_tool;

/* All tools; ends with a NULL name. */
extern const dt_mcp_tool dt_mcp_tools[];

/* Returns the tool of `tools/list`: name, title, description, schemas, annotations. New reference. */
json_t *dt_mcp_tool_to_json(const dt_mcp_tool *tool);
/* Makes the words of the command, from "dtrun" to NULL, in the arena. DT_ERR_USAGE: an unknown, missing or
 * mistyped argument. */
dt_status dt_mcp_tool_words(const char ***out, const dt_mcp_tool *tool, const json_t *arguments,
                            dt_arena *arena, dt_error *err);

/* --- answer: makes the result of a call of the output of its command */

typedef struct dt_mcp_output {
    const char *text, *errors; /* stdout and stderr, NUL-terminated */
    size_t text_length;
    int exit_code; /* as dt_exit_code */
    bool too_long; /* ended because of DT_MCP_OUTPUT_MOST */
} dt_mcp_output;

/* {"content": [...], "structuredContent": {...}, "isError": ...}; an answer of more than `most` bytes is shortened, with
 * a note. New reference. */
json_t *dt_mcp_answer(const dt_mcp_tool *tool, const dt_mcp_output *output, size_t most);
/* The result of a call that failed. New reference. */
json_t *dt_mcp_answer_error(const char *text);

/* --- protocol: what a message of the client asks for */

typedef struct dt_mcp_session {
    bool writes;
    bool begun; /* `initialize` was answered */
} dt_mcp_session;

/* At most one of reply, tool and cancelled. The caller releases the references. */
typedef struct dt_mcp_request {
    json_t *reply;           /* the line to send */
    const dt_mcp_tool *tool; /* to call, with `words` (in the arena); the result goes to `id` */
    const char **words;
    json_t *id;
    bool modern;       /* results have the fields of 2026-07-28 */
    json_t *cancelled; /* the id of a request to end */
} dt_mcp_request;

void dt_mcp_read(dt_mcp_request *out, dt_mcp_session *session, const char *line, size_t length,
                 dt_arena *arena);
void dt_mcp_request_release(dt_mcp_request *request);
/* Makes the line of a result (takes it). New reference. */
json_t *dt_mcp_reply(const json_t *id, bool modern, json_t *result);
/* The line of an error without an id, about a message that cannot be read. New reference. */
json_t *dt_mcp_unreadable(const char *why);

/* --- server: reads requests until the end of stdin, and runs the commands */

dt_status dt_mcp_serve(bool writes, size_t answer_most, dt_error *err);

#endif
