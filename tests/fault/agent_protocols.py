"""What an agent says to supervisors of other protocols: to a newer one its own, to one that is too old
which is the oldest; and the first line of its journal has the version of the journal."""
import json
from agent_talk import Agent, check

agent = Agent()
hello = agent.connect()
check(hello['protocol'] == 1, 'it does not speak protocol 1')

agent.send(command='attach', protocol=7, run='talk', attempt=1, **{'from': 0})
check(agent.wait('hello')['protocol'] == 1, 'it does not answer a newer supervisor by its own protocol')

agent.send(command='attach', protocol=0, run='talk', attempt=1, **{'from': 0})
error = agent.wait('error')
check(error['refused'] is True and error['oldest_protocol'] == 1, f'it does not say what it speaks: {error}')

agent.start(ranks=1, environment={'FAKE_STEPS': '3'})
agent.wait('released')
with open(agent.folder + '/journal.jsonl') as journal:
    lines = [json.loads(line) for line in journal]
check(lines[0]['journal'] == 1, 'its journal does not begin with the version')
check(all('journal' not in line for line in lines[1:]), 'its journal says the version twice')
