// Makes the search work in pages that are opened as files: browsers start no Worker from file://, so
// the theme's search runs in a hidden frame. The theme asks for the name IFrameWorker.
"use strict";

if (location.protocol === "file:") {
  const load = (target, url) =>
    new Promise((done, failed) => {
      const script = target.document.createElement("script");
      Object.assign(script, { src: url, onload: done, onerror: failed });
      target.document.head.append(script);
    });

  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.inner.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(this.inner, next)), Promise.resolve());
      this.loaded = load(this.inner, url);
    }

    postMessage(data) {
      this.loaded.then(() =>
        this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })),
      );
    }
  };
}
