"""What checks of a server ask, and how: alike in all of them."""
import threading
import traceback


def completion(**more):
    return {"prompt": "the sea was", "max_tokens": 12, "temperature": 0, "ignore_eos": True, **more}


def chat(text="what is the sea?", **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, "temperature": 0,
            "ignore_eos": True, **more}


def at_once(calls):
    """Answers of calls that are made together; of one that fails, where and why."""
    out = [None] * len(calls)

    def call(i):
        try:
            out[i] = calls[i]()
        except Exception:
            out[i] = traceback.format_exc()
    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(calls))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return out
