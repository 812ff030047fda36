// What the page can do without: values under the pointer or the arrow keys, "/" for the search, copies, the page's age.
"use strict";

function readAt(chart, at) {
  const texts = [];
  for (const line of chart.lines) {
    let value = null;
    let near = Infinity;
    for (const [time, one] of line.points) {
      if (line.steps ? time <= at : Math.abs(time - at) < near) {
        near = Math.abs(time - at);
        value = one;
      }
    }
    const first = line.points.length ? line.points[0][0] : Infinity;
    const last = line.points.length ? line.points[line.points.length - 1][0] : -Infinity;
    if (value !== null && at >= first - 600 && at <= last + 600) {
      texts.push(`${line.name} ${value.toLocaleString("en")}${chart.unit}`);
    }
  }
  for (const area of chart.areas) {
    const span = area.spans.find(([since, until]) => since <= at && at < until);
    if (span) texts.push(`${area.name} ${span[2].toLocaleString("en")} to ${span[3].toLocaleString("en")}${chart.unit}`);
  }
  return texts.join(" · ");
}

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const chart = JSON.parse(figure.dataset.chart);
  const plot = figure.querySelector("svg");
  if (!plot) continue;
  const cursor = figure.querySelector(".cursor");
  const output = figure.querySelector("output");
  const length = chart.until - chart.since;
  let share = 0.5;
  const show = () => {
    const at = chart.since + share * length;
    const time = new Date(1000 * at).toISOString();
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, String(1000 * share));
    cursor.style.visibility = "visible";
    output.textContent = `${length > 90000 ? time.slice(5, 10) + " " : ""}${time.slice(11, 16)}Z: ${readAt(chart, at) || "nothing known"}`;
  };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    show();
  });
  figure.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.01, ArrowRight: 0.01 }[event.key];
    if (!step) return;
    event.preventDefault();
    share = Math.min(Math.max(share + step, 0), 1);
    show();
  });
}

document.addEventListener("keydown", (event) => {
  const search = document.getElementById("q");
  if (event.key === "/" && search && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

for (const button of document.querySelectorAll("button.copy")) {
  const text = button.parentElement.nextElementSibling;
  button.hidden = false;
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(text); // to copy by hand where the browser gives a page no clipboard
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "copied";
    } catch {
      button.textContent = "selected";
    }
  });
}

const age = document.getElementById("age");
if (age) {
  const loaded = Date.now();
  const text = age.textContent;
  setInterval(() => {
    const minutes = Math.floor((Date.now() - loaded) / 60000);
    if (minutes >= 1) age.textContent = `${text}, ${minutes} min old`;
  }, 10000);
}
