# exit 1
$TERN bench $TINY/llama-q4_0.gguf -t 2 --prefill 8 --decode 2 --batch 2 --repeat 1 --trace t.json | tail -2 &&
python3 - <<'END'
import json
events = json.load(open("t.json"))["traceEvents"]
kinds = {e["cat"] for e in events}
print(sorted(kinds), sorted({e["tid"] for e in events}), {e["ph"] for e in events})
for thread in (0, 1):
    mine = sorted((e["ts"], e["dur"]) for e in events if e["tid"] == thread)
    print(all(a + d <= b + 1e-3 for (a, d), (b, _) in zip(mine, mine[1:])))
print(sum("matmul(" in e["args"]["does"] or "norm(" in e["args"]["does"]
          for e in events if e["cat"] == "matmul"), sum(e["cat"] == "matmul" for e in events))
# the embedding and what makes logits are of no layer
layers = {e["args"].get("layer") for e in events if e["cat"] == "matmul"}
print(sorted(layers, key=str))
# five a layer, and those of the embedding and the output
print([sum(e["cat"] == "barrier" and e["tid"] == t for e in events) for t in (0, 1)])
END
$TERN bench $TINY/llama-q4_0.gguf -t 1 --prefill 1 --decode 1 --repeat 1 --trace /nowhere/t.json
