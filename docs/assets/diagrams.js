// Diagrams have texts of a readable size: a narrow window scrolls them, instead of making them smaller.
const initialize = mermaid.initialize;
const graph = { useMaxWidth: false, rankSpacing: 30, nodeSpacing: 30, padding: 10 };
const sequence = { useMaxWidth: false, wrap: true, width: 120, actorMargin: 30, diagramMarginX: 10 };
const colors = `
  [id$="-arrowhead"] path { fill: var(--md-mermaid-sequence-message-line-color); }
  .sectionTitle, .sectionTitle > tspan { fill: var(--md-mermaid-sequence-loop-fg-color); }
`;
mermaid.initialize = (config) =>
  initialize({
    ...config,
    themeCSS: config.themeCSS + colors,
    flowchart: graph,
    sequence: { ...config.sequence, ...sequence },
  });
