"""A chat as a person at a terminal meets it, through a pseudo-terminal.

    check_chat.py TERN TINY [edits]

`edits`: this build has a line editor; without it what needs one is left out.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

tern, tiny, edits = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), "edits" in sys.argv
MODEL = ["--temp", "0", "-t", "1"]
UP, LEFT = "\033[A", "\033[D"
failures = []


class Chat:
    """The command on a terminal of its own, and what it has shown so far."""

    def __init__(self, *options, model="llama-q8_0", template="chatml", env=None, home=None):
        self.home = home or tempfile.mkdtemp()
        full = {"PATH": os.environ["PATH"], "HOME": self.home, "TERM": "xterm", "LC_ALL": "C"}
        full.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        full.update(env or {})
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(self.home)
            shape = ["--chat-template", template] if template else []
            os.execve(tern, [tern, "chat", f"{tiny}/{model}.gguf", *MODEL, *shape, *options], full)
        self.shown, self.code = "", None

    def read(self, seconds):
        ready = select.select([self.fd], [], [], seconds)[0]
        try:
            data = os.read(self.fd, 65536) if ready else b""
        except OSError:
            return False
        self.shown += data.decode(errors="replace")
        return bool(data) or not ready

    def wait(self, pattern, seconds=20):
        """Until what is shown since the last wait matches; that part is answered."""
        until = time.time() + seconds
        while not (m := re.search(pattern, self.shown, re.S)):
            if time.time() > until or not self.read(0.2):
                raise AssertionError(f"{pattern!r} is not in {self.shown!r}")
        part, self.shown = self.shown[:m.end()], self.shown[m.end():]
        return part

    def type(self, text):
        os.write(self.fd, text.encode())

    def say(self, text):
        self.type(text + "\r")

    def prompt(self):
        return self.wait(r">(\x1b\[[\d;]*[mK])* (\x1b\[[\d;]*[mK])*$")

    def end(self, seconds=20):
        until = time.time() + seconds
        while self.code is None and time.time() < until:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        while self.read(0) and self.fd and select.select([self.fd], [], [], 0.05)[0]:
            pass
        return self.code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def plain(text):
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "")


def a_line_is_answered_and_ctrl_d_ends():
    with Chat("-n", "4", "--stats") as c:
        c.prompt()
        c.say("hello")
        shown = plain(c.wait("context [0-9]+ of"))
        check("generated 4" in shown, shown)
        c.prompt()
        c.type("\x04")
        check(c.end() == 0, f"exit {c.code}, {c.shown!r}")


def an_answer_is_stopped_and_the_program_is_not():
    with Chat("--ignore-eos", "-c", "2048") as c:
        c.prompt()
        c.say("hello")
        c.wait(r"\n.{30}")
        c.type("\x03")
        c.prompt()
        c.say("/context")
        check("1 turn" in plain(c.wait("turns?[\r ]")), "the answer is not kept")
        c.prompt()
        for _ in range(3):
            c.type("\x03")
            c.prompt()
        c.say("/quit")
        check(c.end() == 0, f"exit {c.code}, {c.shown!r}")


def ctrl_c_clears_the_line():
    with Chat("-n", "2") as c:
        c.prompt()
        c.type("/qu")
        c.wait("/qu")
        c.type("\x03")
        c.prompt()
        c.say("/context")
        check("0 turns" in plain(c.wait("turns?[\r ]")), "the line was not cleared")
        c.prompt()
        c.say('"""')
        c.wait(r"\. ")
        c.say("half a message")
        c.wait(r"\. ")
        c.type("\x03")
        c.prompt()
        c.say("/context")
        check("0 turns" in plain(c.wait("turns?[\r ]")), "the message was not taken back")


def a_long_prompt_shows_progress_and_can_be_stopped():
    with Chat("-n", "2", "-c", "100000", "--chunk", "16", "--system", "word " * 20000) as c:
        c.prompt()
        c.say("hello")
        c.wait(r"reading +\d+%")
        c.type("\x03")
        c.wait("the message is taken back")
        c.prompt()
        c.say("/context")
        check("0 turns" in plain(c.wait("turns?[\r ]")), "the message is still there")


def colours_are_for_terminals_that_have_them():
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with Chat("-n", "2", env=env) as c:
            shown = c.prompt()
            check(("\x1b[2m" in shown) == coloured, f"{env}: {shown!r}")
            c.say("hello")
            c.read(1)
            c.say("/quit")
            c.end()
            check(coloured or "\x1b[2m" not in c.shown, f"{env}: {c.shown!r}")
            check(not coloured or ">\x1b[0m " in shown, "the prompt's colour ends with it")


def reasoning_is_dimmed_and_told_apart():
    with tempfile.TemporaryDirectory() as home:
        with open(f"{home}/t", "w") as f:
            f.write("{% for m in messages %}[{{ m.role }}]{{ m.content.split('</think>')|last }}"
                    "{% endfor %}{% if add_generation_prompt %}[assistant]<think>\n{% endif %}")
        options = ["--chat-template", f"{home}/t", "--think-budget", "4", "-n", "20",
                   "--ignore-eos", "--stats"]
        for env in ({}, {"NO_COLOR": "1"}):
            with Chat(*options, home=home, env=env, template=None) as c:
                c.prompt()
                c.say("hello")
                shown = c.wait("generated")
                pattern = (r"\[thinking\]\r\n[^\x1b]+\[end of thinking\]\r\n\S" if env else
                           r"\x1b\[2m[^\x1b]+\x1b\[0m\r\n\r\n[^\x1b]+")
                check(re.search(pattern, shown.split("2004l")[-1]), f"{env}: {shown!r}")


def lines_are_edited_and_remembered():
    with Chat("-n", "1") as c:
        c.prompt()
        c.type("/tokens bc" + LEFT * 2 + "a")
        c.type("\r")
        shown = plain(c.wait(r"\d+ tokens"))
        check(re.search(r"abc|a\n.*b", shown), shown)
        c.prompt()
        c.type(UP)
        c.wait("/tokens abc")
        c.type("\x7f" * 11 + "/context\r")
        c.wait("turns?[\r ]")


def characters_of_many_bytes_are_edited_whole():
    with Chat("-n", "1") as c:
        c.prompt()
        c.type("/system žluťoučký 東京x" + "\x7f" * 2 + "\r")
        c.wait("is set")
        c.prompt()
        c.say("/system")
        c.wait("žluťoučký 東\r")


def a_pasted_text_is_one_message():
    with Chat("-n", "2", "--stats") as c:
        c.prompt()
        c.type("\033[200~/quit\r\nsecond line\tx\r\n\r\nlast\r\n\033[201~")
        c.wait("last")
        time.sleep(0.3)
        c.type(LEFT * 40)
        time.sleep(0.2)
        c.type("say ")
        c.say("\x05")
        c.wait("generated 2")
        c.prompt()
        c.say("/context")
        check("1 turn" in plain(c.wait("turns?[\r ]")), "more than one message")
        c.prompt()
        c.type("one\033\rtwo")
        c.say("")
        c.wait("generated 2")
        c.prompt()
        c.say("/tokens")
        shown = plain(c.wait(r"user +one \.\.\..*assistant"))
        check("say /quit ..." in shown or "/quit ..." in shown, shown)


def messages_of_many_lines_are_put_together():
    with Chat("-n", "2", "--stats") as c:
        c.prompt()
        c.say("first \\")
        c.wait(r"\. ")
        c.say("second")
        c.wait("generated 2")
        c.prompt()
        c.say('"""')
        c.wait(r"\. ")
        c.say("/quit")
        c.wait(r"\. ")
        c.say('"""')
        c.wait("generated 2")
        c.prompt()
        c.say("/tokens")
        shown = plain(c.wait(r"/quit"))
        check(re.search(r"user +first +\.\.\.", shown), shown)


def the_history_is_kept_where_it_is_asked_for():
    with tempfile.TemporaryDirectory() as home:
        env = {"TERN_HISTORY": f"{home}/history"}
        with Chat("-n", "1", env=env, home=home) as c:
            c.prompt()
            c.say("remember me")
            c.prompt()
            c.type("\x04")
            c.end()
        with Chat("-n", "1", env=env, home=home) as c:
            c.prompt()
            c.type(UP)
            c.wait("remember me")
        os.remove(f"{home}/history")
        with Chat("-n", "1", home=home) as c:
            c.prompt()
            c.say("forget me")
            c.prompt()
            c.type("\x04")
            c.end()
        check(os.listdir(home) == [], os.listdir(home))


def the_terminal_is_left_as_it_was():
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with tempfile.TemporaryDirectory() as home:
        p = subprocess.Popen([tern, "chat", f"{tiny}/llama-q8_0.gguf", *MODEL,
                              "--chat-template", "chatml", "-n", "1"], stdin=slave,
                             stdout=slave, stderr=slave, cwd=home,
                             env={"HOME": home, "TERM": "xterm"}, start_new_session=True)
        text = b""
        while b">" not in text and select.select([master], [], [], 20)[0]:
            text += os.read(master, 65536)
        p.send_signal(signal.SIGTERM)
        code = p.wait(20)
    check(code == -signal.SIGTERM, f"exit {code} after SIGTERM")
    check(termios.tcgetattr(slave) == before, "the terminal's modes are other ones")
    os.close(master)
    os.close(slave)


def a_signal_ends_it_and_the_session_is_kept():
    with tempfile.TemporaryDirectory() as home:
        options = ["--session", "s", "--ignore-eos", "-c", "8192"]
        for number in (signal.SIGTERM, signal.SIGHUP):
            with Chat(*options, home=home) as c:
                if number == signal.SIGHUP:
                    c.wait("1 turn restored")
                c.prompt()
                c.say("hello")
                c.wait(r"\n.{30}")  # in the middle of an answer
                os.kill(c.pid, number)
                check(c.end() == -number, f"exit {c.code}, {c.shown!r}")
            check(os.listdir(home) == ["s"], os.listdir(home))
        with Chat(*options, home=home) as c:
            c.wait("2 turns restored")
            c.prompt()
            c.say("/tokens")
            c.wait("user.*assistant.*user.*assistant")
            c.type("/set predict 2\r")
            c.prompt()
            os.kill(c.pid, signal.SIGTERM)  # at the prompt, too
            check(c.end() == -signal.SIGTERM, f"exit {c.code}, {c.shown!r}")


ALWAYS = [a_line_is_answered_and_ctrl_d_ends, an_answer_is_stopped_and_the_program_is_not,
          ctrl_c_clears_the_line, a_long_prompt_shows_progress_and_can_be_stopped,
          colours_are_for_terminals_that_have_them, reasoning_is_dimmed_and_told_apart,
          messages_of_many_lines_are_put_together,
          the_terminal_is_left_as_it_was, a_signal_ends_it_and_the_session_is_kept]
EDITED = [lines_are_edited_and_remembered, characters_of_many_bytes_are_edited_whole,
          a_pasted_text_is_one_message, the_history_is_kept_where_it_is_asked_for]
tests = ALWAYS + (EDITED if edits else [])
for test in tests:
    try:
        test()
    except AssertionError as e:
        failures.append(test.__name__)
        print(f"{test.__name__}: {e}")
print(f"{len(tests)} conversations, {len(failures)} wrong{'' if edits else ', without an editor'}")
sys.exit(bool(failures))
