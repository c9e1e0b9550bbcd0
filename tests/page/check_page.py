"""Uses the page of tern serve as people do, in headless Chromium.

    check_page.py TERN TINY [NAME...]

The page and the answers are a real server's; what a small model would never say, such as hostile
markup, thinking or progress, comes from a fetch that is put in the page's way. TERN_SHOTS names a
folder for pictures.
"""
import concurrent.futures
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
import going_on
import looks
import output
import talking
from browser import Browser, program
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny / "llama-q8_0.gguf"
if not MODEL.exists() or not program():
    print("skipped: no small models (they need numpy)" if program() else
          "skipped: no Chromium (Debian: chromium-headless-shell)")
    sys.exit(77)

# These look at what the whole server does; the others are used side by side.
ALONE = [talking.comes_whole_and_lets_nothing_out, talking.tells_of_its_pool, talking.stops]
TESTS = [talking.types_streams_and_keeps, talking.edits_and_asks_again,
         talking.asks_with_its_settings, talking.keeps_conversations,
         talking.talks_in_two_conversations_at_once, talking.takes_text_files,
         going_on.goes_on_with_what_was_cut,
         going_on.offers_nothing_where_the_context_is_full,
         going_on.shows_how_far_a_real_prompt_is_read, going_on.joins_what_two_windows_say,
         going_on.loses_no_click_to_another_window,
         output.is_quick_with_a_long_conversation,
         output.paints_a_long_answer_in_linear_time,
         output.is_the_same_piece_by_piece_and_at_once, output.lets_no_output_do_anything,
         output.shows_in_time_what_no_reader_needs, output.says_where_links_lead,
         output.begins_whatever_was_noted,
         looks.folds_thinking_and_shows_progress, looks.tells_what_went_wrong,
         looks.asks_for_a_key, looks.shows_the_machine, looks.is_light_and_dark,
         looks.fits_a_phone, looks.can_be_used_by_keys_and_heard]

SIDE_BY_SIDE = 3

only = sys.argv[3:]
server = Server(tern, MODEL, "-c", "4096", "-np", "4", "--chat-template", "chatml", "--alias",
                "tiny.gguf")
server.tern, server.model = tern, MODEL  # for who starts another
browser = Browser(program())


def run(test):
    begun = time.monotonic()
    try:
        more = test(server, browser)
        print(f"ok {test.__name__} ({time.monotonic() - begun:.2f} s)",
              f": {more}" if more else "", flush=True)
        return True
    except Exception as e:
        where = e.__traceback__
        while where.tb_next and where.tb_frame.f_code is not test.__code__:
            where = where.tb_next
        print(f"FAILED {test.__name__}: line {where.tb_lineno}: {type(e).__name__}: "
              f"{str(e)[:1500]}", flush=True)
        return False


def wanted(tests):
    return [t for t in tests if not only or t.__name__ in only]


try:
    good = [run(t) for t in wanted(ALONE)]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        good += pool.map(run, wanted(TESTS))
finally:
    browser.close()
    code = server.stop()
if code != 0:
    print("FAILED: the server's exit code", code, server.said[-300:])
sys.exit(code != 0 or not all(good))
