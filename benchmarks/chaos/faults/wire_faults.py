"""Faults on the way between the controller and Flink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.chaos import wire_troubles
from benchmarks.chaos.proxy import Trouble
from benchmarks.chaos.scene import CONFIRMED, Fault, Inject, Scene
from benchmarks.waiting import wait_until

PUTS, REPLIES = "request", "replies"
_SHARE = 0.7  # of all replies
_COMES_S = 90.0


def trouble_put(trouble: Trouble) -> Inject:
    """Return a fault that meets the next request for the job."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        hits = scene.world.proxy.hits

        def is_met() -> bool:
            return scene.world.proxy.hits > hits

        with scene.world.proxy.troubling_put(scene.job_id, trouble):
            yield
            wait_until(lambda: is_met() or not scene.is_open(), _COMES_S, f"a request for {scene.job} is sent", 0.05)
            scene.is_hit = is_met()

    return inject


def trouble_replies(trouble: Trouble) -> Inject:
    """Return a fault that meets most replies to the controller for a while."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        hits = scene.world.proxy.hits
        with scene.world.proxy.troubling_replies(trouble, _SHARE, scene.rng):
            yield
            scene.pause(6.0, 14.0)
        scene.is_hit = scene.world.proxy.hits > hits
        scene.notes.append(f"{scene.world.proxy.hits - hits} replies")

    return inject


def delay_beyond_deadline(scene: Scene) -> AbstractContextManager[None]:
    """Delay the next request for the job until it is given up."""
    return trouble_put(wire_troubles.delay_by(scene.world.conditions.confirm_s + 12.0))(scene)


def hide_paths(pattern: str, *, restarts: bool) -> Inject:
    """Return a fault: for a while Flink answers 503 on paths of a form, also to a controller that is started then."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        world = scene.world
        with world.proxy.troubling_paths(pattern, wire_troubles.reply_503):
            if restarts:
                world.controllers.kill(world.main)
                world.main = world.controllers.start()
                world.wait_for_ticks(1)
                with world.silence(scene.job, 0.0, "nobody knows whether another autoscaler is active"):
                    yield
                    scene.hit()
                    scene.pause(6.0, 12.0)
            else:
                yield
                scene.hit()
                scene.pause(6.0, 12.0)

    return inject


_OF_PUTS: dict[str, Trouble] = {
    "request dropped": wire_troubles.drop,
    "request delayed by 5 s": wire_troubles.delay_by(5.0),
    "request duplicated": wire_troubles.duplicate,
    "request answered 200 and not handed on": wire_troubles.fake_acceptance,
    "request handed on, its reply lost": wire_troubles.lose_reply,
    "request handed on, its reply cut": wire_troubles.cut_reply,
    "request handed on, answered 500": wire_troubles.accept_with_500,
    "request answered 500": wire_troubles.reply_500,
    "request answered with HTML": wire_troubles.reply_html,
    "request redirected": wire_troubles.redirect,
}
_OF_REPLIES: dict[str, Trouble] = {
    "connections closed": wire_troubles.drop,
    "replies delayed by 3 s": wire_troubles.delay_by(3.0),
    "replies 500": wire_troubles.reply_500,
    "replies HTML": wire_troubles.reply_html,
    "replies garbage": wire_troubles.reply_garbage,
    "replies redirect": wire_troubles.redirect,
    "replies cut in the middle": wire_troubles.cut_reply,
}

# What Flink is thought to have refused is not tried again for a time.
_REFUSALS = dict.fromkeys(
    ("request redirected", "request answered with HTML", "request answered 500"),
    ("confirmed*", "refused: blocked_target", "refused: refused_by_flink", "refused: refused"),
)

FAULTS = (
    *(Fault(name, PUTS, trouble_put(trouble), _REFUSALS.get(name, CONFIRMED)) for name, trouble in _OF_PUTS.items()),
    Fault("request delayed beyond its deadline", PUTS, delay_beyond_deadline),
    *(Fault(name, REPLIES, trouble_replies(trouble)) for name, trouble in _OF_REPLIES.items()),
    Fault(
        "replies about other autoscalers 503",
        REPLIES,
        hide_paths(r"/jobs/[0-9a-f]{32}/config|/jobmanager/config", restarts=True),
    ),
    Fault("replies about free slots 503", REPLIES, hide_paths("/overview", restarts=False), ("confirmed*", "refused*")),
)
