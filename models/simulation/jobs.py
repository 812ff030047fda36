"""The simulated company: thirteen streaming jobs of three to eight operators."""

from __future__ import annotations

from models.simulation.catalogue import CatalogueJob, Draft, build
from models.simulation.control import CpuRuleOptions, Slot, Timetable
from models.simulation.spec import Ship
from models.simulation.workload import Part, SourceLoad

TAXI, WIKI, NYC = "dsp_taxi", "dsp_wiki_de", "nab_nyc_taxi"
OFFICE_HOURS = Timetable((Slot(0, 0.55), Slot(6, 0.80), Slot(10, 1.0), Slot(20, 0.90), Slot(23, 0.65)))
DAY_NIGHT = Timetable((Slot(0, 0.60), Slot(5, 1.0), Slot(22, 0.75)))
WEEKDAYS = Timetable((Slot(0, 0.78, 1.0), Slot(7, 0.45, 0.6), Slot(11, 0.92, 0.8), Slot(22, 1.08, 1.0)))
EAGER = CpuRuleOptions(high=0.75, low=0.45, target=0.58, patience=4, cooldown_s=900.0)
THRIFTY = CpuRuleOptions(high=0.86, low=0.55, target=0.72, patience=9, cooldown_s=1200.0)


def _load(peak_per_s: float, *parts: Part, noise: float = 0.05) -> SourceLoad:
    return SourceLoad(peak_per_s, parts, sample_noise=noise)


def _shop() -> list[CatalogueJob]:
    return [
        build(
            "checkout-enrichment",
            [
                Draft("Source: orders", 5),
                Draft("Source: profile-changes", 2),
                Draft("parse", 9, ("Source: orders",)),
                Draft("dedupe", 7, ("parse",), 0.97, 0.03, Ship.HASH),
                Draft("join-profile", 16, ("dedupe", "Source: profile-changes"), 1.0, 0.035, Ship.HASH),
                Draft("window-5m", 6, ("join-profile",), 0.08, 0.02, Ship.HASH),
                Draft("Sink: lake", 3, ("window-5m",), 0.0, 0.01),
            ],
            [_load(42_000, Part(WIKI, contrast=2.0)), _load(6_000, Part(TAXI, contrast=1.6, hours=2))],
            rule=EAGER,
            state_bytes_per_record=24.0,
        ),
        build(
            "inventory-sync",
            [
                Draft("Source: stock-moves", 4),
                Draft("normalise", 8, ("Source: stock-moves",)),
                Draft("upsert-state", 12, ("normalise",), 0.6, 0.04, Ship.HASH),
                Draft("Sink: inventory-db", 9, ("upsert-state",), 0.0, 0.03),
            ],
            [_load(18_000, Part(NYC, weeks=9, hours=5, contrast=1.05))],
            timetable=WEEKDAYS,
            state_bytes_per_record=60.0,
            checkpoint_interval_s=180.0,
        ),
        build(
            "email-triggers",
            [
                Draft("Source: customer-events", 3),
                Draft("rules", 11, ("Source: customer-events",), 0.12, 0.015),
                Draft("Sink: mailer", 2, ("rules",), 0.0, 0.01),
            ],
            [_load(26_000, Part(WIKI, 0.6, weeks=1, contrast=2.2), Part(NYC, 0.4, weeks=4, hours=6))],
            timetable=DAY_NIGHT,
            state_bytes_per_record=4.0,
        ),
        build(
            "recommendation-features",
            [
                Draft("Source: views", 6),
                Draft("Source: purchases", 2),
                Draft("parse-views", 10, ("Source: views",)),
                Draft("filter-bots", 7, ("parse-views",), 0.82),
                Draft("co-occurrence", 22, ("filter-bots", "Source: purchases"), 0.5, 0.03, Ship.HASH),
                Draft("embed", 18, ("co-occurrence",), 1.0, 0.02),
                Draft("Sink: feature-store", 8, ("embed",), 0.0, 0.02),
                Draft("Sink: view-archive", 4, ("filter-bots",), 0.0, 0.01),
            ],
            [_load(88_000, Part(WIKI, contrast=1.9, weeks=2)), _load(7_000, Part(NYC, weeks=14, hours=6))],
            rule=THRIFTY,
            state_bytes_per_record=30.0,
        ),
    ]


def _web() -> list[CatalogueJob]:
    return [
        build(
            "clickstream-sessions",
            [
                Draft("Source: clicks", 7),
                Draft("parse", 13, ("Source: clicks",)),
                Draft("filter-bots", 6, ("parse",), 0.86),
                Draft("sessionize", 24, ("filter-bots",), 0.11, 0.028, Ship.HASH),
                Draft("Sink: sessions", 3, ("sessionize",), 0.0, 0.01),
                Draft("count-pages", 5, ("filter-bots",), 0.02, 0.02, Ship.HASH),
                Draft("Sink: dashboard", 1, ("count-pages",), 0.0, 0.01),
            ],
            [_load(120_000, Part(WIKI, contrast=2.1))],
            state_bytes_per_record=14.0,
        ),
        build(
            "page-views-rollup",
            [
                Draft("Source: page-views", 5),
                Draft("project", 6, ("Source: page-views",)),
                Draft("rollup-1m", 14, ("project",), 0.05, 0.03, Ship.HASH),
                Draft("Sink: olap", 2, ("rollup-1m",), 0.0, 0.01),
            ],
            [_load(95_000, Part(WIKI, 0.7, hours=3, contrast=2.0), Part(TAXI, 0.3, contrast=2.0))],
            timetable=OFFICE_HOURS,
        ),
        build(
            "search-indexer",
            [
                Draft("Source: edits", 3),
                Draft("parse", 5, ("Source: edits",)),
                Draft("tokenize", 19, ("parse",), 3.0, 0.012),
                Draft("Sink: index", 12, ("tokenize",), 0.0, 0.045, Ship.HASH),
            ],
            [_load(9_000, Part(WIKI, weeks=1, hours=-2, contrast=1.8), noise=0.07)],
            rule=EAGER,
            checkpoint_interval_s=90.0,
        ),
        build(
            "ad-attribution",
            [
                Draft("Source: impressions", 8),
                Draft("Source: ad-clicks", 2),
                Draft("decode", 10, ("Source: impressions",)),
                Draft("join-30m", 26, ("decode", "Source: ad-clicks"), 0.35, 0.022, Ship.HASH),
                Draft("attribute", 9, ("join-30m",), 1.0, 0.02),
                Draft("Sink: billing", 4, ("attribute",), 0.0, 0.02),
            ],
            [
                _load(140_000, Part(NYC, 0.5, weeks=17, contrast=1.0), Part(WIKI, 0.5, contrast=1.7)),
                _load(8_000, Part(NYC, weeks=17, hours=1)),
            ],
            state_bytes_per_record=22.0,
            state_retention_s=1800.0,
        ),
    ]


def _mobility() -> list[CatalogueJob]:
    return [
        build(
            "ride-dispatch",
            [
                Draft("Source: ride-requests", 3),
                Draft("Source: driver-positions", 7),
                Draft("snap-to-road", 15, ("Source: driver-positions",), 1.0, 0.015),
                Draft("match", 20, ("snap-to-road", "Source: ride-requests"), 0.2, 0.03, Ship.HASH),
                Draft("Sink: offers", 5, ("match",), 0.0, 0.02),
            ],
            [_load(5_000, Part(NYC, weeks=7)), _load(60_000, Part(TAXI, contrast=2.3))],
            rule=EAGER,
            checkpoint_interval_s=90.0,
            state_bytes_per_record=8.0,
        ),
        build(
            "surge-pricing",
            [
                Draft("Source: trips", 4),
                Draft("parse", 6, ("Source: trips",)),
                Draft("grid-window", 13, ("parse",), 0.3, 0.04, Ship.HASH),
                Draft("price-model", 9, ("grid-window",), 1.0, 0.01),
                Draft("Sink: prices", 2, ("price-model",), 0.0, 0.01),
            ],
            [_load(30_000, Part(NYC, weeks=12, hours=1))],
            timetable=Timetable((Slot(0, 0.95, 1.0), Slot(3, 0.45), Slot(8, 0.95, 0.85), Slot(18, 1.08, 1.05))),
        ),
        build(
            "fleet-telemetry",
            [
                Draft("Source: vehicle-signals", 9),
                Draft("clean", 17, ("Source: vehicle-signals",), 0.93, 0.012),
                Draft("Sink: timeseries", 11, ("clean",), 0.0, 0.035),
            ],
            [_load(150_000, Part(TAXI, weeks=1, hours=4, contrast=2.2))],
            rule=THRIFTY,
            failures_per_week=1.5,
        ),
    ]


def _platform() -> list[CatalogueJob]:
    return [
        build(
            "fraud-scoring",
            [
                Draft("Source: payments", 3),
                Draft("parse", 4, ("Source: payments",)),
                Draft("features", 14, ("parse",), 1.0, 0.03, Ship.HASH),
                Draft("score", 21, ("features",), 1.0, 0.015),
                Draft("Sink: alerts", 1, ("score",), 0.0, 0.01),
                Draft("Sink: audit", 5, ("score",), 0.0, 0.02),
            ],
            [_load(14_000, Part(NYC, 0.5, weeks=2, hours=4), Part(TAXI, 0.5, weeks=2, contrast=1.8))],
            state_bytes_per_record=90.0,
            restart_base_s=32.0,
        ),
        build(
            "log-anomaly",
            [
                Draft("Source: app-logs", 6),
                Draft("parse", 12, ("Source: app-logs",)),
                Draft("template-miner", 17, ("parse",), 0.9, 0.02, Ship.HASH),
                Draft("window-1m", 7, ("template-miner",), 0.03, 0.02, Ship.HASH),
                Draft("detect", 3, ("window-1m",), 0.05, 0.01),
                Draft("Sink: incidents", 1, ("detect",), 0.0, 0.01),
            ],
            [
                _load(
                    110_000, Part(TAXI, 0.4, hours=6, contrast=2.0), Part(WIKI, 0.6, weeks=1, contrast=2.0), noise=0.08
                )
            ],
            timetable=DAY_NIGHT,
            failures_per_week=1.2,
        ),
    ]


def company() -> list[CatalogueJob]:
    """Return the thirteen jobs."""
    return [*_shop(), *_web(), *_mobility(), *_platform()]
