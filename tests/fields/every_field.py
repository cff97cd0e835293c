#!/usr/bin/env python3
"""Every field of a recipe x {finish, crash and restart, stop and resume, resume with another number of ranks}.

The fields come from recipes/fields/fields.c itself: a field with neither a value here nor a reason to be left out fails
the test. Each course is compared with the undisturbed run: state, exit code, number of steps, every point of the
history once, the same losses to the bit (with another number of ranks, whose sums have another order, within a bound).

    every_field.py              fields that do not interact share runs
    every_field.py --all        each by itself, with its other values
    every_field.py --only PATH  one of them
"""
import argparse
import collections
import concurrent.futures
import csv
import io
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get('DTRUN_BIN', 'build/dev/bin')).resolve()
DTRUN = str(BIN / 'dtrun')
EXACT, FP32, HALF, OTHER = 0.0, 1e-5, 3e-2, math.inf  # bound of losses with another number of ranks

BASE = {
    'ranks': 2, 'threads': 1, 'model.layers': 1, 'model.heads': 2, 'model.embed': 16,
    'data.train': 'corpus.txt', 'batch.sequences': 2, 'batch.tokens': 16, 'batch.accumulate': 1,
    'optimizer.lr': 3e-3, 'schedule.steps': 40, 'schedule.warmup_steps': 5, 'evaluate.every': 10,
    'evaluate.sequences': 8, 'checkpoint.every': 10, 'checkpoint.keep': 0, 'log.every': 1,
}

Value = collections.namedtuple('Value', 'value needs group bound')


def value(value, group, needs=None, bound=FP32):
    return Value(value, needs or {}, group, bound)


FSDP, FP16 = {'strategy.kind': 'fsdp'}, {'precision.kind': 'fp16'}
MUON = {'optimizer.kind': 'muon'}
LLAMA = {'model.kind': 'llama', 'model.ffn': 40, 'model.kv_heads': 1}
LONG_WAVES = {**LLAMA, 'model.rope_scaling': 'llama3', 'model.rope_original_tokens': 16}
YARN = {**LLAMA, 'model.rope_scaling': 'yarn', 'model.rope_factor': 2, 'model.rope_original_tokens': 8}
LONGROPE = {**LLAMA, 'model.rope_scaling': 'longrope', 'model.rope_original_tokens': 8,
            'model.rope_short_factors': '[1, 1, 2, 2]', 'model.rope_long_factors': '[2, 2, 4, 4]'}
LORA = {'model.kind': 'llama', 'model.from': 'weights', 'model.layers': 2, 'model.heads': 4, 'model.embed': 12,
        'lora.rank': 2}
APART = {'data.cross_documents': 'false', 'data.end_of_text': 1}
PAIRS = {'model.kind': 'transformer', 'model.ffn': 40, 'data.train': 'pairs/train',
         'data.validation': 'pairs/valid', 'data.source': 's', 'data.target': 't',
         'data.tokenizer': 'pairs', 'batch.max_tokens': 64}
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / 'golden/chat'
CHAT = {'data.format': 'chat', 'data.tokens': 'chats', 'data.train': GOLDEN / 'weighted.chats', 'data.split': 0.25,
        'data.tokenizer': GOLDEN / 'model/tokenizer.json', 'batch.tokens': 20}
ONE_DICTIONARY = {**PAIRS, 'data.tokenizer': 'pairs/dict.s.txt'}
SGD = {'optimizer.kind': 'sgd', 'optimizer.momentum': 0.9}

# The values of a field; the first one with a group is used in the runs of this group.
FIELDS = {
    'name': [value('other', 'plain')],
    'hostfile': [value('hosts', None)],
    'nodes_min': [value(1, 'plain')],
    'preempt': [value('false', 'plain')],
    'gpus': [value(0, 'plain')],
    'ranks': [value(3, 'three'), value(1, None)],
    'threads': [value(2, 'plain')],
    'network.interface': [value('lo', 'plain')],
    'strategy.kind': [value('fsdp', 'divided'), value('dp', 'dp')],
    'strategy.bucket_mb': [value(0.002, 'plain')],
    'strategy.first_bucket_mb': [value(0.001, 'plain')],
    'strategy.shard': [value('gradients', 'divided', FSDP), value('optimizer', None, FSDP)],
    'strategy.within': [value('node', 'divided', FSDP)],
    'strategy.reshard_after_forward': [value('false', 'three', FSDP)],
    'strategy.reduce_dtype': [value('bf16', 'divided', bound=HALF)],
    'strategy.reduce_each_micro_step': [value('false', 'divided', {**FSDP, 'batch.accumulate': 2})],
    'model.preset': [value('gpt2-small', None)],
    'model.layers': [value(2, 'three')],
    'model.heads': [value(4, 'plain')],
    'model.embed': [value(32, 'three')],
    'model.vocab': [value(100, 'plain')],
    'model.end_ids': [value('[3, 7]', 'plain')],
    'model.dropout': [value(0.1, 'sgd', bound=OTHER)],
    'model.attention_dropout': [value(0.1, 'sgd', bound=OTHER)],
    'model.activation': [value('gelu', 'plain')],
    'model.positions': [value('sinusoidal', 'dp')],
    'model.scale_embedding': [value('true', 'plain')],
    'model.tied': [value('false', 'plain')],
    'model.kv_heads': [value(2, 'llama', LLAMA)],
    'model.head_width': [value(6, 'llama', LLAMA)],
    'model.ffn': [value(24, 'llama', LLAMA), value(24, 'plain')],
    'model.rope_theta': [value(500000, 'llama', LLAMA)],
    'model.rope_scaling': [value('llama3', 'llama', LONG_WAVES),
                           value('linear', None, {**LLAMA, 'model.rope_factor': 2})],
    'model.rope_factor': [value(8, 'llama', LONG_WAVES)],
    'model.rope_low_freq_factor': [value(2, 'llama', LONG_WAVES)],
    'model.rope_high_freq_factor': [value(6, 'llama', LONG_WAVES)],
    'model.rope_original_tokens': [value(16, 'llama', LONG_WAVES)],
    'model.norm_eps': [value(1e-6, 'llama', LLAMA), value(1e-6, 'plain')],
    'model.qkv_bias': [value('true', 'llama', LLAMA)],
    'model.o_bias': [value('true', 'llama', {**LLAMA, 'model.qkv_bias': 'true'})],
    'model.mlp_bias': [value('true', 'llama', LLAMA)],
    'model.qk_norm': [value('true', 'llama', LLAMA)],
    'model.qk_norm_whole': [value('true', 'olmo2', {**LLAMA, 'model.qk_norm': 'true'})],
    'model.block_norms': [value('after', 'olmo2', LLAMA), value('both', 'gemma', LLAMA)],
    'model.layer_norm': [value('true', 'llama', LLAMA)],
    'model.norm_plus_one': [value('true', 'gemma', LLAMA)],
    'model.gate': [value('gelu_tanh', 'gemma', LLAMA), value('gelu', None, LLAMA)],
    'model.residual_multiplier': [value(0.22, 'olmo2', LLAMA)],
    'model.embedding_multiplier': [value(3, 'olmo2', LLAMA)],
    'model.attention_multiplier': [value(0.1, 'olmo2', LLAMA)],
    'model.query_scalar': [value(24, 'gemma', LLAMA)],
    'model.attention_softcap': [value(5, 'gemma', LLAMA)],
    'model.logits_softcap': [value(4, 'gemma', LLAMA)],
    'model.logits_divisor': [value(2, 'olmo2', LLAMA)],
    'model.window': [value(5, 'gemma', LLAMA)],
    'model.window_layers': [value('wf', 'gemma', {**LLAMA, 'model.window': 5, 'model.layers': 2})],
    'model.rope_local_theta': [value(500, 'gemma', {**LLAMA, 'model.window': 5})],
    'model.rope_layers': [value('rn', 'gemma', {**LLAMA, 'model.layers': 2})],
    'model.rotary_share': [value(0.5, 'gemma', LLAMA)],
    'model.rope_attention_factor': [value(1.2, 'gemma', YARN)],
    'model.rope_beta_fast': [value(16, 'gemma', YARN)],
    'model.rope_beta_slow': [value(2, 'gemma', YARN)],
    'model.rope_mscale': [value(0.7, 'olmo2', YARN)],
    'model.rope_mscale_all': [value(1.1, 'olmo2', YARN)],
    'model.rope_truncate': [value('false', 'gemma', YARN)],
    'model.rope_short_factors': [value('[1, 1, 2, 2]', None, LONGROPE)],
    'model.rope_long_factors': [value('[2, 2, 4, 4]', None, LONGROPE)],
    'model.family': [value('llama', None, LLAMA)],
    'model.decoder_layers': [value(2, 'pairs', PAIRS)],
    'model.norm': [value('pre', 'pairs', PAIRS)],
    'model.source_vocab': [value(70, 'pairs', PAIRS)],
    'model.pad': [value(3, 'pairs', PAIRS)],
    'model.shared_embeddings': [value('true', 'shared', ONE_DICTIONARY)],
    'model.label_smoothing': [value(0.2, 'pairs', PAIRS)],
    'lora.rank': [value(3, 'lora', LORA)],
    'lora.alpha': [value(5, 'lora', LORA)],
    'lora.targets': [value('[q, v, down]', 'lora', LORA)],
    'lora.dropout': [value(0.2, 'lora', LORA, OTHER)],
    'lora.rslora': [value('true', 'lora', LORA)],
    'activation_checkpointing': [value('selective', 'divided'), value('full', None), value('keep_all', None)],
    'cuda_graphs': [value('false', 'plain')],
    'precision.kind': [value('bf16', 'divided', bound=HALF), value('fp16', 'half', bound=HALF)],
    'precision.loss_scale': [value(4294967296, 'half', FP16, HALF)],
    'precision.scale_window': [value(4, 'half', FP16, HALF)],
    'precision.min_loss_scale': [value(1, 'half', FP16, HALF)],
    'precision.tf32': [value('true', 'plain')],
    'data.train': [value('[corpus.txt, more.txt]', 'sgd')],
    'data.mixture': [value('[{files: corpus.txt, weight: 1}, {files: more.txt, weight: 2}]', 'half')],
    'data.validation': [value('[more.txt]', 'sgd')],
    'data.split': [value(0.2, 'plain'), value(0, None)],
    'data.tokens': [value('byte', 'sgd')],
    'data.tokenizer': [value('char', 'plain')],
    'data.field': [value('body', 'plain')],
    'data.tail': [value('drop', 'half'), value('drop', None, {'schedule.epochs': 2,
                                                             'schedule.steps': 0})],
    'data.cross_documents': [value('false', 'divided', APART)],
    'data.pack': [value('true', 'divided', APART)],
    'data.end_of_text': [value(2, 'llama', {**LLAMA, **APART}), value(3, None, APART)],
    'data.source': [value('t', 'shared', {**ONE_DICTIONARY, 'data.target': 's'})],
    'data.target': [value('s', 'shared', {**ONE_DICTIONARY, 'data.source': 't'})],
    'data.too_long': [value('drop', 'pairs', {**PAIRS, 'batch.tokens': 10}),
                      value('cut', 'chats', {**CHAT, 'batch.tokens': 12})],
    'data.format': [value('chat', 'chats', CHAT)],
    'data.loss': [value('conversation', 'chats', CHAT)],
    'data.empty': [value('drop', 'pairs', PAIRS)],
    'data.ship': [value('never', 'plain')],
    'batch.sequences': [value(3, 'dp')],
    'batch.tokens': [value(24, 'dp')],
    'batch.max_tokens': [value(48, 'pairs', PAIRS)],
    'batch.accumulate': [value(2, 'divided')],
    'batch.total': [value(8, 'plain')],
    'optimizer.kind': [value('sgd', 'sgd'), value('adam', 'three')],
    'optimizer.variant': [value('fairseq', 'plain')],
    'optimizer.lr': [value(1e-3, 'three')],
    'optimizer.beta1': [value(0.8, 'plain')],
    'optimizer.beta2': [value(0.99, 'plain')],
    'optimizer.eps': [value(1e-6, 'plain')],
    'optimizer.moments': [value('bf16', 'half', bound=HALF)],
    'optimizer.weight_decay': [value(0, 'plain')],
    'optimizer.decays': [value('all', 'three')],
    'optimizer.momentum': [value(0.9, 'sgd', SGD)],
    'optimizer.nesterov': [value('true', 'sgd', SGD)],
    'optimizer.adjust_lr': [value('match_rms_adamw', 'matrices', MUON)],
    'optimizer.adamw_lr': [value(1e-3, 'matrices', MUON)],
    'schedule.kind': [value('polynomial', 'sgd'), value('warmup_stable_decay', 'three'),
                      value('inverse_sqrt', None), value('linear', None), value('constant', None)],
    'schedule.steps': [value(47, 'plain')],
    'schedule.epochs': [value(1, 'half', {'schedule.steps': 0}),
                        value(2, 'divided', {'schedule.steps': 0}),
                        value(1, None, {'schedule.steps': 1000000})],
    'schedule.warmup_steps': [value(3, 'plain')],
    'schedule.warmup_init_lr': [value(1e-5, 'plain')],
    'schedule.min_lr': [value(1e-4, 'plain')],
    'schedule.period_steps': [value(10, 'dp')],
    'schedule.period_mult': [value(2, 'dp', {'schedule.period_steps': 10})],
    'schedule.shrink': [value(0.5, 'dp', {'schedule.period_steps': 10})],
    'schedule.power': [value(2, 'sgd', {'schedule.kind': 'polynomial'})],
    'schedule.decay_steps': [value(8, 'three', {'schedule.kind': 'warmup_stable_decay'})],
    'time_limit': [value('1h', 'plain')],
    'clip': [value(0.5, 'plain'), value(0, None)],
    'seed': [value(7, 'plain')],
    'evaluate.every': [value(7, 'plain'), value(0, None)],
    'evaluate.every_epoch': [value(1, 'divided')],
    'evaluate.sequences': [value(0, 'plain')],
    'evaluate.bleu': [value('true', 'pairs', PAIRS)],
    'evaluate.tasks': [value('[task.jsonl]', 'plain')],
    'evaluate.tasks_every': [value(9, 'plain')],
    'evaluate.samples': [value('["the quick", "a"]', 'plain')],
    'evaluate.samples_tokens': [value(7, 'plain', {'evaluate.samples': '[the]'})],
    'evaluate.samples_temperature': [value(0.7, 'plain', {'evaluate.samples': '[the]'})],
    'evaluate.samples_top_k': [value(3, 'plain', {'evaluate.samples': '[the]', 'evaluate.samples_temperature': 1})],
    'evaluate.samples_top_p': [value(0.5, 'plain', {'evaluate.samples': '[the]', 'evaluate.samples_temperature': 1})],
    'evaluate.samples_seed': [value(5, 'plain', {'evaluate.samples': '[the]', 'evaluate.samples_temperature': 1})],
    'evaluate.beam': [value(2, 'pairs', {**PAIRS, 'evaluate.bleu': 'true'})],
    'checkpoint.every': [value(7, 'three')],
    'checkpoint.keep': [value(1, 'plain')],
    'checkpoint.every_epoch': [value(1, 'divided')],
    'checkpoint.keep_epochs': [value(1, 'divided')],
    'checkpoint.keep_best': [value(2, 'plain'), value(0, None)],
    'checkpoint.best_by': [value('valid_bleu', 'pairs', {**PAIRS, 'evaluate.bleu': 'true'})],
    'log.every': [value(3, 'dp')],
    'log.system': [value('false', 'plain')],
    'grace_seconds': [value(60, 'plain')],
    'failure.max_restarts': [value(1, 'plain')],
    'failure.launcher_lost': [value('stop_after 10m', 'plain')],
    'failure.hang_seconds': [value(60, 'plain')],
    'notify.webhook': [value('http://127.0.0.1:9/', 'plain')],
}
LEFT_OUT = {
    'nodes': 'other machines: tests/net',
    'slurm.options': 'a Slurm cluster: tests/slurm',
    'model.kind': 'another model has other data: dist.mlp_trains_on_rows',
    'model.inputs': 'of models on rows: dist.mlp_trains_on_rows',
    'model.outputs': 'of models on rows: dist.mlp_trains_on_rows',
    'model.loss': 'of models on rows: dist.mlp_trains_on_rows',
    'data.codes': 'of models on pairs of sentences: unit.corpus_pairs',
    'data.chat_template': 'of conversations as text: cli.chats',
    'model.from': 'files of its own: cli.weights',
    'lora.from': 'files of its own: cli.lora',
    'dpo.beta': 'pairs of answers: cli.dpo',
    'search.kind': 'of sweeps: cli.sweep',
    'search.count': 'of sweeps: cli.sweep',
    'search.seed': 'of sweeps: cli.sweep',
    'search.at_once': 'of sweeps: cli.sweep',
    'search.nodes': 'of sweeps: cli.sweep_gpus',
    'early_stop.metric': 'of sweeps: cli.sweep',
    'early_stop.after': 'of sweeps: cli.sweep',
    'early_stop.keep': 'of sweeps: cli.sweep',
    'tensor.size': 'divides heads and ranks of the other values: dist.tensor_resumes_gpt2',
    'tensor.across_nodes': 'of several nodes: dist.tensor_across_nodes',
    'task': 'of runs that generate and score: cli.task_recipes',
    **{path: 'of other programs: cli.command, cli.command_output' for path in (
        'command', 'shell', 'processes', 'workdir.folder', 'workdir.ship', 'workdir.max_mb', 'setup', 'activate', 'collect', 'env', 'metrics.kind',
        'metrics.pattern', 'metrics.file', 'checkpoints.path', 'checkpoints.marker', 'checkpoints.settle', 'checkpoints.max_mb', 'resume', 'stop_signal', 'args')},
    **{path: 'of runs that generate and score: cli.task_recipes' for path in (
        'lines.run', 'lines.input', 'lines.target', 'lines.output', 'lines.replace',
        'generate.tokens', 'generate.batch', 'generate.beam', 'generate.length_penalty',
        'generate.stop', 'generate.past_end', 'generate.no_special', 'generate.temperature',
        'generate.top_k', 'generate.top_p', 'generate.repetition_penalty')},
}


class Wrong(Exception):
    pass


def flatten(values):
    return [word for path, item in values.items() for word in ('--set', f'{path}={item}')]


class Place:
    """A folder with data, recipe and the engines that are killed or stopped."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='dtrun-fields.'))
        self.env = {**os.environ, 'XDG_STATE_HOME': str(self.folder / 'state'),
                    'XDG_CACHE_HOME': str(self.folder / 'cache'),
                    'XDG_CONFIG_HOME': str(self.folder / 'config'), 'OMP_NUM_THREADS': '1'}
        draw = random.Random(1)
        words = 'the quick brown fox jumps over a lazy dog and then it sleeps until morning'.split()
        for name, lines in (('corpus.txt', 160), ('more.txt', 40)):
            text = '\n'.join(' '.join(draw.choice(words) for _ in range(8)) for _ in range(lines))
            (self.folder / name).write_text(text + '\n')
        (self.folder / 'task.jsonl').write_text('{"prompt": "the", "choices": ["fox", "dog"], "answer": 0}\n')
        pairs = self.folder / 'pairs'
        pairs.mkdir()
        for language in 'st':
            (pairs / f'dict.{language}.txt').write_text(''.join(f'{word} 9\n' for word in words))
        for name, lines in (('train', 200), ('valid', 40)):
            for language in 'st':
                (pairs / f'{name}.{language}').write_text(''.join(
                    ' '.join(draw.choice(words) for _ in range(draw.randrange(1, 13))) + '\n'
                    for _ in range(lines)))
        shutil.copytree(pathlib.Path(__file__).parent.parent / 'golden/huggingface/llama',
                        self.folder / 'weights')
        (self.folder / 'hosts').write_text('localhost\n')
        (self.folder / 'base.yaml').write_text('name: base\n' + self.base())
        (self.folder / 'pairs.yaml').write_text('name: base\n' + self.base('batch.sequences'))
        for what in ('kill', 'stop'):
            engine = self.folder / f'engine-{what}'
            engine.write_text(
                f'#!/bin/sh\nASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS" '
                f'LD_PRELOAD={BIN}/moment.so MOMENT={what} '
                f'MOMENT_FILE="{self.folder}/reached-$DTRUN_RUN_ID" exec {BIN}/dtrun-engine "$@"\n')
            engine.chmod(0o755)

    @staticmethod
    def base(without=None):
        rooms = {}
        for path, item in BASE.items():
            room, _, key = path.rpartition('.')
            if path != without:
                rooms.setdefault(room, []).append(f'{key}: {item}')
        return ''.join('\n'.join(lines) + '\n' if not room else f'{room}: {{{", ".join(lines)}}}\n'
                       for room, lines in rooms.items())

    def call(self, *words, engine=None, code=0):
        env = dict(self.env)
        if engine:
            env['DTRUN_ENGINE'] = str(self.folder / f'engine-{engine}')
        done = subprocess.run([DTRUN, *words], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder)
        if done.returncode != code:
            raise Wrong(f"dtrun {' '.join(words)}: exit code {done.returncode}, not {code}\n"
                        f'{done.stdout[-2000:]}{done.stderr[-3000:]}')
        return done.stdout

    def json(self, *words, **more):
        return json.loads(self.call(*words, '--json', **more))

    def close(self):
        for run in self.json('list', '--limit', '0')['runs']:
            if run['state'] not in ('finished', 'failed', 'stopped'):
                subprocess.run([DTRUN, 'stop', '--now', run['run']], env=self.env,
                               capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def want(condition, *what):
    if not condition:
        raise Wrong(' '.join(str(word) for word in what))


def points(place, run, name):
    """Returns step -> value: every step once, from the attempt that the history uses."""
    if name not in place.json('show', run)['metrics']:
        return {}
    rows = list(csv.DictReader(io.StringIO(place.call('metrics', run, '--name', name))))
    steps = [int(row['step']) for row in rows]
    want(steps == sorted(set(steps)), f'{name} of {run}: a step is there twice or out of order', steps)
    return {int(row['step']): float(row['value']) for row in rows}


def check(place, end, undisturbed, every, bound):
    """Compares an ended run with the undisturbed one."""
    want(end['state'] == 'finished', 'it is', end['state'], end['reason'])
    steps = undisturbed['end']['steps'] if undisturbed else end['steps']
    want(end['steps'] == end['steps_total'] == steps, 'steps:', end['steps'], 'of',
         end['steps_total'], 'not', steps)
    losses, valid = points(place, end['run'], 'loss'), points(place, end['run'], 'valid_loss')
    wanted = {step for step in range(1, steps + 1) if step % every == 0 or step in (1, steps)}
    want(set(losses) == wanted if every == 1 else wanted <= set(losses), 'points at', sorted(losses))
    if undisturbed is None:
        return {'end': end, 'losses': losses, 'valid': valid}
    want(valid.keys() == undisturbed['valid'].keys(), 'validated at', sorted(valid), 'not',
         sorted(undisturbed['valid']))
    for name, mine, theirs in (('loss', losses, undisturbed['losses']),
                               ('valid_loss', valid, undisturbed['valid'])):
        for step in mine.keys() & theirs.keys():
            want(abs(mine[step] - theirs[step]) <= bound * abs(theirs[step]), name, 'of step', step,
                 'is', mine[step], 'not', theirs[step])
    listed = next(run for run in place.json('list', '--limit', '0')['runs']
                  if run['run'] == end['run'])
    want(listed['step'] == listed['steps_total'] == steps, 'list says', listed)
    return None


def stop_at_checkpoint(place, words):
    run = place.call('launch', '--detach', *words, engine='stop').strip()
    reached = place.folder / f'reached-{run}'
    while not reached.exists():
        state = place.json('status', run)
        want(state['state'] not in ('finished', 'failed', 'stopped'), 'it ended before its stop:',
             state['state'], state['reason'])
        time.sleep(0.05)
    said = place.call('stop', run)
    want(f"continue with 'dtrun resume {run}'" in said, 'stop says', said)
    state = place.json('status', run)
    want(state['state'] == 'stopped' and state['exit_code'] == 4, 'after a stop it is', state)
    want(0 < state['step'] < (state['steps_total'] or math.inf), 'stopped at', state['step'], 'of',
         state['steps_total'])
    return run


def finish(place, words, before, every, bound):
    planned = place.json('launch', '--dry-run', *words)['steps']
    result = check(place, place.json('launch', '--wait', *words), None, every, EXACT)
    steps, run = result['end']['steps'], result['end']['run']
    skipped = max(points(place, run, 'skipped_steps').values(), default=0)
    want(planned in (steps, steps + skipped), 'the dry run says', planned, 'steps')
    said = place.call('show', run)
    want(' of 0' not in said, said)
    place.call('resume', run, '--wait', code=2)  # the run has made all its steps
    return result


def crash(place, words, before, every, bound):
    end = place.json('launch', '--wait', *words, engine='kill')
    want(end['attempt'] == 2, 'attempt', end['attempt'], 'ended it')
    check(place, end, before, every, EXACT)


def stop(place, words, before, every, bound):
    run = stop_at_checkpoint(place, words)
    check(place, place.json('resume', run, '--wait'), before, every, EXACT)


def other_world(place, words, before, every, bound, values):
    run = stop_at_checkpoint(place, words)
    ranks, accumulate = values['ranks'], values['batch.accumulate']
    change = {'ranks': 1, 'batch.accumulate': ranks * accumulate} if ranks > 1 else {
        'ranks': 2, 'batch.sequences': values['batch.sequences'] // 2}
    if 'batch.total' in values:  # the micro-steps follow from it
        change = {'ranks': 1 if ranks > 1 else 2}
    check(place, place.json('resume', run, '--wait', *flatten(change)), before, every, bound)


def go(place, name, sets, bound):
    """Runs one recipe through all courses. Returns what is wrong, '' for nothing."""
    values = {**BASE, **sets}
    recipe = 'pairs.yaml' if 'batch.max_tokens' in sets else 'base.yaml'
    words = [str(place.folder / recipe), *flatten(sets)]
    every = int(values['log.every'])
    begun, before, wrong = time.monotonic(), None, []
    for way in (finish, crash, stop, other_world):
        try:
            more = {'values': values} if way is other_world else {}
            result = way(place, words, before, every, bound, **more)
            before = result if way is finish else before
        except Wrong as problem:
            wrong.append(f'FAILED {name}, {way.__name__}: {problem}\n  {" ".join(flatten(sets))}')
            if way is finish:
                break
    print(f'{name}: {time.monotonic() - begun:.1f} s', *wrong, sep='\n', flush=True)
    return wrong


def table():
    fields = json.loads(subprocess.run([str(BIN / 'field_list')], capture_output=True,
                                       check=True).stdout)
    known = FIELDS.keys() | LEFT_OUT.keys()
    paths = {field['path'] for field in fields}
    want(paths <= known, 'a field with neither a value nor a reason to be left out:', paths - known)
    want(known <= paths, 'no such field:', known - paths)
    for field in fields:
        for item in FIELDS.get(field['path'], []):
            want(str(item.value) != str(BASE.get(field['path'], field['default'])), field['path'],
                 'has the value that it has without')


def groups():
    out = {}
    for path, items in FIELDS.items():
        for item in items:
            if item.group is None:
                continue
            sets, bound = out.get(item.group, ({}, EXACT))
            sets = {**item.needs, **sets, path: item.value}
            out[item.group] = (sets, max(bound, item.bound))
    return [(f'group {name}', sets, bound) for name, (sets, bound) in out.items()]


def singles(only):
    return [(f'{path}={item.value}', {**item.needs, path: item.value}, item.bound)
            for path, items in FIELDS.items() for item in items if only in (None, path)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--all', action='store_true', help='each field by itself')
    parser.add_argument('--only', metavar='PATH', help='this field by itself')
    options = parser.parse_args()
    try:
        table()
    except Wrong as problem:
        sys.exit(f'FAILED: {problem}')
    cases = singles(options.only) if options.all or options.only else groups()
    place = Place()
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = sum(pool.map(lambda case: go(place, *case), cases), [])
    finally:
        place.close()
    sys.exit(f'{len(wrong)} of {4 * len(cases)} failed' if wrong else 0)


if __name__ == '__main__':
    main()
