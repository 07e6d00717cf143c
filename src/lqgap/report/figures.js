"use strict";
// Draws every panel from its JSON, in the colours of the style sheet, and again when these change.
(() => {
  const panels = JSON.parse(document.getElementById("panels").textContent);
  const hidden = new Map(); // names of series that a reader has switched off, by figure
  const config = { displayModeBar: false, doubleClick: false, typesetMath: false, scrollZoom: false };

  const coloured = (value, style, isColour) => {
    if (typeof value === "string" && isColour && value.startsWith("role:")) {
      return style.getPropertyValue("--" + value.slice(5)).trim();
    }
    if (Array.isArray(value)) return value.map((each) => coloured(each, style, isColour));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, coloured(each, style, /color$/.test(key))])
    );
  };

  const axis = {
    automargin: true, fixedrange: true, gridcolor: "role:rule", linecolor: "role:rule", zeroline: false,
    tickcolor: "role:rule", ticks: "outside", ticklen: 4, hoverformat: ".3g",
    tickfont: { color: "role:muted" },
  };
  const common = (layout, width, font) => ({
    ...layout, width,
    xaxis: { ...axis, ...layout.xaxis, title: { ...layout.xaxis.title, standoff: 10, font: { color: "role:muted", size: 13 } } },
    yaxis: { ...axis, ...layout.yaxis },
    font: { family: font, size: 13, color: "role:ink" },
    margin: { l: 12, r: 14, t: 10, b: 12 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false, dragmode: false, hovermode: "closest", hoverdistance: 30,
    hoverlabel: { bgcolor: "role:surface", bordercolor: "role:neutral", font: { color: "role:ink" }, align: "left", namelength: -1 },
  });

  const draw = (within) => {
    const style = getComputedStyle(document.documentElement);
    for (const element of within.querySelectorAll("[data-panel]")) {
      const { traces, layout } = panels[element.dataset.panel];
      const off = hidden.get(element.closest("figure")) ?? new Set();
      const shown = traces.map((trace) => ({ ...trace, visible: !off.has(trace.name) }));
      const font = getComputedStyle(document.body).fontFamily;
      Plotly.react(element, coloured(shown, style), coloured(common(layout, element.clientWidth, font), style), config);
    }
  };

  const drawAll = () => draw(document);

  for (const button of document.querySelectorAll("button[data-series]")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const off = hidden.get(figure) ?? new Set();
      const name = button.dataset.series;
      if (!off.delete(name)) off.add(name);
      hidden.set(figure, off);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      draw(figure);
    });
  }

  // Paper is light, and narrower than most screens.
  const forPaper = (isPaper) => {
    document.documentElement.classList.toggle("paper", isPaper);
    for (const details of document.querySelectorAll(isPaper ? "details:not([open])" : "details.for-paper")) {
      details.open = isPaper;
      details.classList.toggle("for-paper", isPaper);
    }
    drawAll();
  };
  window.addEventListener("beforeprint", () => forPaper(true));
  window.addEventListener("afterprint", () => forPaper(false));
  let frame = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(drawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
