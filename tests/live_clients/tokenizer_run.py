# SPDX-License-Identifier: Apache-2.0
"""`dynosim serve --tokenizer` against the tokenizers package: the same ids for the same files, for
kinds of vocabularies that models have; texts of answers are what the package makes of their ids.
Needs a program that was built with DYNO_HF_TOKENIZER."""
import json
import os
import random
import sys
import tempfile
import urllib.request

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

from server import Server, arguments

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2 + 2?"}]
TEXTS = ["", "Hello, World!", " leading and trailing ", "a  b\n\n\tc\r\n", "na\u00efve caf\u00e9",
         "\u96ea\u304c\u964d\u308b", "\U0001f642\U0001f1e9\U0001f1ea e\u0301", "x" * 300, " " * 20000 + "x" * 20000, "1234567.89",
         "\u00a0\u2028\ufeff\u0000 \u007f", "don't you'll I'VE", "<|im_start|>user", "<s>[INST]</s>",
         "def f(x):\n    return x ** 2  # comment\n", "\u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd"]


def corpus():
    """The documents of this repository."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    folders = [root, os.path.join(root, "docs"), os.path.join(root, "docs", "concepts")]
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield from file


def byte_level():
    """As GPT-2, Qwen and their kin, with the markers of ChatML."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    chat = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in CHAT)
    return tokenizer, chat + "<|im_start|>assistant\n", False


def split_by_pattern():
    """As Llama 3: its pattern of words, a mark of the beginning, and headers."""
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=marks))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{marks[0]} $A", special_tokens=[(marks[0], tokenizer.token_to_id(marks[0]))])
    chat = "".join(f"<|start_header_id|>{m['role']}<|end_header_id|>\n\n{m['content']}<|eot_id|>"
                   for m in CHAT)
    return (tokenizer, marks[0] + chat + "<|start_header_id|>assistant<|end_header_id|>\n\n", False)


def byte_fallback():
    """As Llama 2 and Mistral: spaces are a character, unknown characters are bytes."""
    special = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    tokenizer.train_from_iterator((word for line in corpus() for word in line.split()), trainers.BpeTrainer(
        vocab_size=2500, show_progress=False, limit_alphabet=90,
        special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)]))
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, plain_chat(), True


def unigram():
    """As T5 and Gemma's older kin."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(
        vocab_size=1500, unk_token="<unk>", special_tokens=["<unk>", "</s>"], show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer, plain_chat(), True


def word_pieces():
    """As BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=2000, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer, plain_chat(), True


def plain_chat():
    return "".join(f"{m['role']}: {m['content']}\n" for m in CHAT) + "assistant:"


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode())
    return json.loads(urllib.request.urlopen(request).read())


def streamed(server, body):
    request = urllib.request.Request(server.url + "/v1/completions",
                                     json.dumps({**body, "stream": True}).encode())
    text, ids = "", []
    for line in urllib.request.urlopen(request):
        if line.startswith(b"data: {"):
            choice = json.loads(line[6:])["choices"][0]
            text += choice["text"]
            ids += choice.get("token_ids") or []
    return text, ids


def random_text(draw):
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x4E00, 0x4FFF), (0x1F600, 0x1F64F)]
    return "".join(chr(draw.randint(*draw.choice(ranges))) if draw.random() < 0.7 else " the"
                   for _ in range(draw.randint(1, 60)))


def same_ids(server, tokenizer, text):
    for special in (True, False):
        theirs = tokenizer.encode(text, add_special_tokens=special).ids
        ours = post(server, "/tokenize", {"prompt": text, "add_special_tokens": special})["tokens"]
        assert ours == theirs, f"{text!r}: {ours} instead of {theirs}"
    ours = post(server, "/detokenize", {"tokens": theirs})["prompt"]
    assert ours == tokenizer.decode(theirs, skip_special_tokens=False), f"{text!r}: {ours!r}"


def check(program, make, draw):
    tokenizer, chat, chat_special = make()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        server = Server(program, ["--tokenizer", folder, "--prefill-ms", "1", "--decode-ms", "0.1"])
    with server:
        texts = TEXTS + [random_text(draw) for _ in range(100)]
        for text in texts:
            same_ids(server, tokenizer, text)
        theirs = tokenizer.encode(chat, add_special_tokens=chat_special).ids
        assert post(server, "/tokenize", {"messages": CHAT})["tokens"] == theirs, "chat"
        prompt = "The cat sat on the mat."
        body = {"prompt": prompt, "max_tokens": 300, "return_token_ids": True, "seed": 1}
        answer = post(server, "/v1/completions", body)
        choice, usage = answer["choices"][0], answer["usage"]
        assert usage["prompt_tokens"] == len(tokenizer.encode(prompt).ids)
        special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
        assert not special & set(choice["token_ids"]) and len(choice["token_ids"]) == 300
        # In the middle of a text, so that nothing is done to its beginning.
        before = tokenizer.encode("a", add_special_tokens=False).ids
        together = tokenizer.decode(before + choice["token_ids"])
        assert together == tokenizer.decode(before) + choice["text"], (together, choice["text"])
        assert streamed(server, body) == (choice["text"], choice["token_ids"])
        again = len(tokenizer.encode("a" + choice["text"], add_special_tokens=False).ids)
        assert again == 300 + len(before), f"a client counts {again} tokens"
    return len(texts)


def main():
    args = arguments(__doc__).parse_args()
    draw = random.Random(7)
    for make in (byte_level, split_by_pattern, byte_fallback, unigram, word_pieces):
        print(f"{make.__name__}: ok, {check(args.bin, make, draw)} texts", flush=True)


if __name__ == "__main__":
    sys.exit(main())
