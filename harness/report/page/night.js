"use strict";
const all = (css, root = document) => [...root.querySelectorAll(css)];
const search = document.getElementById("search");
const shown = document.getElementById("shown");
let wanted = null;

// ---- the table of all cases: words and a state
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of all("#all tbody tr")) {
    const fits = words.every(word => row.dataset.words.includes(word)) &&
      (wanted === null || row.dataset.state === wanted);
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} shown`;
}
search.addEventListener("input", filter);
for (const button of all(".counts button")) {
  button.addEventListener("click", () => {
    wanted = wanted === button.dataset.state ? null : button.dataset.state;
    for (const each of all(".counts button"))
      each.setAttribute("aria-pressed", String(each.dataset.state === wanted));
    filter();
  });
}

// ---- the command of a case, to the clipboard
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
for (const button of all(".command button")) {
  button.addEventListener("click", async () => {
    const done = await copy(button.previousElementSibling.textContent);
    button.textContent = done ? "copied" : "not copied";
    setTimeout(() => { button.textContent = "copy"; }, 2000);
    button.focus();
  });
}

// ---- a link to a case opens it; j and k go from failure to failure, / to the search
function open() {
  const place = document.getElementById(location.hash.slice(1));
  if (place instanceof HTMLDetailsElement) {
    place.open = true;
    place.querySelector("summary").focus();
    place.scrollIntoView();
  }
}
addEventListener("hashchange", open);
function step(by) {
  const every = all("section.group details");
  if (!every.length) return;
  const now = every.findIndex(each => each.contains(document.activeElement));
  const next = every[now < 0 ? (by > 0 ? 0 : every.length - 1) : now + by];
  if (!next) return;
  next.open = true;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "nearest" });
}
addEventListener("keydown", event => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = { j: () => step(1), k: () => step(-1), "/": () => search.focus() };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
open();
filter();
