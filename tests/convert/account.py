"""Every part of a command line is converted, listed with a reason, or makes the import fail. Tests random subsets of
the flags that `dtrun import TOOL --flags --json` names, mixed with unknown flags, words that belong to no flag,
redirections and variables.

    account.py DTRUN [COUNT [SEED]]
"""
import json, random, re, shlex, subprocess, sys

dtrun, count, seed = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ['60', '1'][len(sys.argv) - 2:]))
draw = random.Random(seed)
BASES = {
    'fairseq': ['fairseq-train d --arch transformer_lm', 'fairseq-train d --task language_modeling --arch transformer_lm_gpt',
                'fairseq-train d --arch transformer -s de -t en --max-tokens 512',
                'torchrun --nnodes 2 --nproc_per_node 4 fairseq-train d --task translation --arch transformer_iwslt_de_en --max-tokens 512',
                'mpirun -np 4 --host h1:2,h2:2 fairseq-train d --arch transformer_lm'],
    'llm.c': ['./train_gpt2cu -e d12', 'mpirun -np 4 ./train_gpt2cu -e d12'],
    'nanogpt': ['python train.py', 'torchrun --standalone --nproc_per_node 4 train.py'],
}
TEXTS = {'--arch': ['transformer_lm'], '--task': ['language_modeling'], '--optimizer': ['adam', 'nag', 'sgd'],
         '--adam-betas': ['(0.9,0.98)'], '--lr': ['0.1'], '--update-freq': ['2'], '-e': ['d12', 'gpt2_124M.bin'],
         'init_from': ['scratch', 'gpt2'], 'dtype': ['float16', 'float32'], '-k': ['cosine', 'wsd'],
         '--lr-scheduler': ['cosine', 'inverse_sqrt', 'polynomial_decay', 'fixed'], '--eval-bleu-args': ['{"beam": 3}']}


def value_of(flag):
    if flag['takes'] == 'bool':
        return draw.choice(['True', 'False'])
    if flag['takes'] == 'int':
        return str(draw.choice([0, 1, 2, 8, 4096]))
    if flag['takes'] == 'number':
        return draw.choice(['0', '0.0', '0.1', '1e-4', '7'])
    return draw.choice(TEXTS.get(flag['name'], ['word', 'none', 'a/b']))


def draw_parts(tool, flags):
    """Parts that are added to a base: (words, text that the output must have about them)."""
    parts = []
    for flag in draw.sample(flags, draw.randrange(1, 9)):
        name, value = flag['name'], value_of(flag)
        if tool == 'nanogpt':
            parts.append(([f'--{name}={value}'], f'--{name}={value}'))
        elif flag['takes'] == 'nothing':
            parts.append(([name], name))
        else:
            parts.append(([name, value], f'{name} {value}'))
    if tool == 'fairseq':
        parts += draw.sample([(['--frobnicate', '7'], '--frobnicate 7'), (['--unknown'], '--unknown')], draw.randrange(3))
    draw.shuffle(parts)
    return parts


def told(answer):
    lines = [line.partition('# ')[2] for line in answer['recipe'].splitlines() if not line.startswith('#')]
    return lines + [item['about'] for key in ('not_carried', 'same', 'notes') for item in answer[key]]


bad = refused = 0
for tool, bases in BASES.items():
    table = json.loads(subprocess.run([dtrun, 'import', tool, '--flags', '--json'], capture_output=True, check=True).stdout)
    flags = [flag for flag in table['flags'] if flag['name'] not in ('--source-lang', '--target-lang')]
    for _ in range(count):
        words, wanted = shlex.split(draw.choice(bases)), []
        for more, shown in draw_parts(tool, flags):
            words += more
            wanted.append(shown)
        line = ' '.join(shlex.quote(word) for word in words)
        if draw.random() < 0.3:
            line = 'export FIRST=1\n' + line
            wanted.append('FIRST=1')
        if draw.random() < 0.3:
            line = 'SECOND=2 ' + line if '\n' not in line else line.replace('\n', '\nSECOND=2 ')
            wanted.append('SECOND=2')
        if draw.random() < 0.3:
            line += ' >train.log 2>&1'
            wanted += ['>train.log', '2>&1']
        got = subprocess.run([dtrun, 'import', tool, '--json', '-'], input=line, capture_output=True, text=True)
        if got.returncode == 2 and got.stderr:
            refused += 1
            continue
        assert got.returncode == 0, (line, got.returncode, got.stderr)
        lines = told(json.loads(got.stdout))
        for shown in wanted:
            if not any(re.search(r'(^|[ (,/\'])' + re.escape(shown) + r'($|[ ,:;)\'])', text) for text in lines):
                bad += 1
                print(f'{tool}: nothing is told of {shown!r} in: {line}')
assert refused < count * len(BASES) / 2, f'{refused} of {count * len(BASES)} are refused'
print(f'{count * len(BASES)} command lines, {refused} refused, {bad} parts lost')
sys.exit(bad > 0)
