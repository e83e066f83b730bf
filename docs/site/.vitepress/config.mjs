// The site of the documents. scripts/docs.sh copies the pages beside this folder, and says where they came from.
import { existsSync } from 'node:fs'
import { dirname, posix, relative, resolve } from 'node:path'
import { defineConfig } from 'vitepress'

const root = process.env.PAYMENTS_ROOT
const copies = process.env.PAYMENTS_PAGES
const source = 'https://github.com/seed-8ee7f392/payments/tree/main/'

const pages = (...names) => names.map(([text, name]) => ({ text, link: `/docs/${name}` }))

export default defineConfig({
  title: 'payments',
  description: 'Crypto payments inside a Go service',
  srcDir: copies,
  outDir: resolve(root, 'site'),
  rewrites: { 'README.md': 'index.md', 'examples/:name/README.md': 'examples/:name/index.md' },
  markdown: {
    config(md) {
      linkToSource(md)
      drawDiagrams(md)
      keepBraces(md)
    },
  },
  themeConfig: {
    outline: [2, 3],
    search: { provider: 'local' },
    sidebar: [
      { text: 'Use it', items: [{ text: 'Overview', link: '/' }, ...pages(
        ['Getting started', 'getting-started'], ['Concepts', 'concepts'], ['Testing your integration', 'testing-your-integration'],
        ['Webhooks', 'webhooks'], ['Errors', 'errors'], ['The API', 'api'], ['The checkout page', 'checkout'],
      )] },
      { text: 'Run it', items: [...pages(
        ['Going live', 'going-live'], ['Networks', 'networks'], ['Many processes', 'many-processes'],
        ['Databases of many machines', 'distributed'], ['Backups', 'backups'], ['Limits', 'limits'],
        ['Upgrading', 'upgrading'], ['Performance', 'performance'], ['Stability', 'stability'],
      ), { text: 'Threat model', link: '/SECURITY' }] },
      { text: 'Extend it', items: pages(['Write a store', 'write-a-store']) },
      { text: 'Know it', items: [...pages(
        ['States', 'states'], ['Rules', 'rules'], ['Verification', 'verification'], ['Balances', 'balances'],
        ['Bitcoin', 'bitcoin'], ['Solana', 'solana'], ['Tron', 'tron'], ['Pitfalls', 'pitfalls'], ['Decisions', 'decisions'],
        ['Glossary', 'glossary'], ['Dependencies', 'dependencies'], ['Testing', 'testing'],
      ), { text: 'Changelog', link: '/CHANGELOG' }] },
    ],
  },
})

// linkToSource has links to files that are no pages lead to the repository. A link to nothing stays, and ends the build.
function linkToSource(md) {
  md.core.ruler.push('source', (state) => {
    for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
      const href = token.type === 'link_open' && token.attrGet('href')
      if (!href || /^([a-z]+:|#|\/)/.test(href)) continue

      const [path] = href.split('#')
      const from = dirname(state.env.realPath ?? state.env.path)
      const target = resolve(root, relative(copies, from), decodeURI(path))
      if (!existsSync(target)) continue

      if (existsSync(resolve(target, 'README.md'))) {
        token.attrSet('href', posix.join(path, 'README.md'))
      } else if (!target.endsWith('.md')) {
        token.attrSet('href', source + relative(root, target))
      }
    }
  })
}

// drawDiagrams gives mermaid blocks to the theme's Diagram, and keeps everything else.
function drawDiagrams(md) {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, i, ...rest) =>
    tokens[i].info.trim() === 'mermaid'
      ? `<Diagram code="${encodeURIComponent(tokens[i].content)}" />`
      : fence(tokens, i, ...rest)
}

// keepBraces shows the braces of other templates, which Vue would take for its own.
function keepBraces(md) {
  for (const name of ['text', 'code_inline']) {
    const render = md.renderer.rules[name]
    md.renderer.rules[name] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
  }
}
