// Runs the worker of the search in a hidden frame: browsers start no worker from a page that was opened as a file.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = url;
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
