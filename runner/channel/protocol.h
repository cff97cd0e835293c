/* protocol: what agent and supervisor share of runner/PROTOCOL.md: versions, limits, and the signature of a
 * journal's line. */
#ifndef DT_RUNNER_CHANNEL_PROTOCOL_H
#define DT_RUNNER_CHANNEL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Supervisor and agent must have the same version: `attach` and `hello` state it, and each refuses
 * another one. Increase it when a message changes; a new kind of journal event does not need it
 * (PROTOCOL.md, "Versions"). */
#define DT_PROTOCOL_VERSION 1
/* Version of the journal's lines. The first line that an agent writes states it; a journal of
 * another version is not read. */
#define DT_PROTOCOL_JOURNAL_VERSION 1
/* `dtrun-agent connect` puts this in front of its message on stderr if another dtrun must be used. */
#define DT_PROTOCOL_OTHER "of another dtrun: "
/* Output of `dtrun-agent stop` if the ranks have ended but the agent has not. */
#define DT_PROTOCOL_AGENT_STAYS "agent stays\n"

#define DT_PROTOCOL_MAX_LINE_BYTES ((size_t)1 << 20)
/* Longest command: `start` contains the plan, of at most 16 MiB, which may name ten thousand
 * files. */
#define DT_PROTOCOL_MAX_COMMAND_BYTES ((size_t)17 << 20)

#define DT_PROTOCOL_MAX_RANKS 65536

/* journal_line: signs and checks a line of a journal (runner/PROTOCOL.md, "Journal").
 *
 * A line ends with `sum`, 8 hexadecimal digits of FNV-1a over what is before it. The agent writes and reads lines;
 * the rebuilding of a history reads them. Lines are passed without their newline.
 */

/* Adds `sum` to the object in `text` that begins at `from`. */
void dt_journal_line_sign(dt_strbuf *text, size_t from);
/* The sequence number of the line; -1 if the line is damaged. */
int64_t dt_journal_line_sequence(const char *line, size_t length);

#endif
