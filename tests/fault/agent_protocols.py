"""An agent refuses a supervisor with another protocol version and reports its own; the first line of its journal has
the version of the journal."""
import json
from agent_talk import Agent, check

agent = Agent()
hello = agent.connect()
check(hello['protocol'] == 1, 'it does not speak protocol 1')

for protocol in 0, 7:
    agent.send(command='attach', protocol=protocol, run='talk', attempt=1, **{'from': 0})
    error = agent.wait('error')
    check(error['refused'] is True and error['protocol'] == 1, f'it does not state its protocol: {error}')

agent.start(ranks=1, environment={'FAKE_STEPS': '3'})
agent.wait('released')
with open(agent.folder + '/journal.jsonl') as journal:
    lines = [json.loads(line) for line in journal]
check(lines[0]['journal'] == 1, 'its journal does not begin with the version')
check(all('journal' not in line for line in lines[1:]), 'its journal says the version twice')
