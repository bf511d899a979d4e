// Browsers start no workers for pages that are opened as files. There, run a worker's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => setTimeout(() => {
        const event = new MessageEvent("message", { data: structuredClone(data) })
        this.dispatchEvent(event)
        this.onmessage?.(event)
      })
      const script = inside.document.createElement("script")
      script.src = new URL(url, location.href).href
      script.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
      inside.document.body.append(script)
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) }))
      }
    }
    terminate() {
      this.frame.remove()
    }
  }
}
