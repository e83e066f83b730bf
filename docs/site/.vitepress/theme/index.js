import DefaultTheme from 'vitepress/theme'
import { h, onMounted, ref } from 'vue'

// Diagram draws a mermaid diagram in the reader's browser, and shows its text until then.
const Diagram = {
  props: { code: { type: String, required: true } },
  setup(props) {
    const text = decodeURIComponent(props.code)
    const drawn = ref('')

    onMounted(async () => {
      const { default: mermaid } = await import('mermaid')
      mermaid.initialize({ startOnLoad: false })
      drawn.value = (await mermaid.render(`d${Math.random().toString(36).slice(2)}`, text)).svg
    })

    return () => (drawn.value ? h('div', { innerHTML: drawn.value }) : h('pre', text))
  },
}

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Diagram', Diagram)
  },
}
