/* rendezvous: collects the values that ranks offer, and sends all of them once every rank has offered one.
 *
 * Kept in memory only: an agent repeats its offers at every attach, so a restarted supervisor gets all of
 * them again.
 */
#include "runner/supervisor/session/session_int.h"

static json_t *values_of(dt_session *session, const char *name)
{
    json_t *values = json_object_get(session->offers, name);

    if (values == NULL) {
        values = json_array();
        for (int64_t i = 0; i < session->world_size; i++)
            json_array_append_new(values, json_null());
        json_object_set_new(session->offers, name, values);
    }
    return values;
}

void dt_rendezvous_offer(dt_session *session, const dt_message *message)
{
    const char *name = dt_message_string(message, "name");
    json_t *values = values_of(session, name), *value;
    size_t rank;

    json_array_set_new(values, (size_t)message->rank,
                       json_string(dt_message_string(message, "value")));
    json_array_foreach(values, rank, value)
        if (json_is_null(value))
            return;
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_send(
            session->nodes[i].link,
            json_pack("{s:s, s:s, s:O}", "command", "rendezvous", "name", name, "values", values));
}
