/* log: adds lines to the run's log, as events. */
#include "base/log.h"
#include "runner/agent/agent_int.h"

void dt_agent_rank_log(dt_agent_rank *rank, const char *stream, const char *text)
{
    dt_tail_add(&rank->tail, text);
    dt_journal_add(&rank->agent->journal,
                   json_pack("{s:s, s:I, s:s, s:s}", "event", "log", "rank", (json_int_t)rank->rank,
                             "stream", stream, "text", text));
}

void dt_agent_say(dt_agent *agent, const char *text)
{
    dt_log_info("%s", text);
    dt_journal_add(&agent->journal, json_pack("{s:s, s:i, s:s, s:s}", "event", "log", "rank", -1,
                                              "stream", "agent", "text", text));
}
