"""Trains a small GPT-2 on bytes with transformers' Trainer: the trainer of huggingface-trainer.yaml.

The Trainer reads the environment that torchrun also sets. A callback prints its metrics as JSON lines.
"""
import argparse
import json
import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

TOKENS = 64


class Lines(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and 'loss' in logs:
            print(json.dumps({'step': state.global_step, 'loss': float(logs['loss']),
                              'learning_rate': logs['learning_rate']}))


class Bytes(torch.utils.data.Dataset):
    def __init__(self, text):
        self.ids = torch.tensor(list(text), dtype=torch.long)

    def __len__(self):
        return len(self.ids) // TOKENS

    def __getitem__(self, i):
        ids = self.ids[i * TOKENS:(i + 1) * TOKENS]
        return {'input_ids': ids, 'labels': ids}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', default='out')
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('--resume')
    args = parser.parse_args()
    text = pathlib.Path(__file__).read_bytes() * 20
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=TOKENS, n_embd=64, n_layer=2, n_head=2))
    how = TrainingArguments(output_dir=args.out, max_steps=args.steps, per_device_train_batch_size=4,
                            learning_rate=args.lr, logging_steps=5, save_steps=20, report_to=[], disable_tqdm=True)
    Trainer(model=model, args=how, train_dataset=Bytes(text), callbacks=[Lines()]).train(
        resume_from_checkpoint=args.resume)


if __name__ == '__main__':
    main()
